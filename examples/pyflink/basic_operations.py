"""Maps, filters and reduces rows that hold JSON: three jobs of one environment."""

from __future__ import annotations

import json
import sys
from typing import Any

from holdfast.common import Encoder, Types
from holdfast.datastream import DataStream, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink

USERS = [
    (1, '{"name": "Ann", "logins": 12, "home": {"country": "Chile"}}'),
    (2, '{"name": "Bob", "logins": 3, "home": {"country": "Kenya"}}'),
    (3, '{"name": "Cleo", "logins": 7, "home": {"country": "Japan"}}'),
    (4, '{"name": "Dan", "logins": 20, "home": {"country": "Kenya"}}'),
]


def one_more_login(user: Any) -> tuple[int, str]:
    parsed = json.loads(user.info)
    parsed["logins"] += 1
    return user.id, json.dumps(parsed)


def country_and_logins(user: Any) -> tuple[str, int]:
    parsed = json.loads(user.info)
    return parsed["home"]["country"], parsed["logins"]


def show(stream: DataStream, output: str | None, name: str) -> None:
    if output is None:
        stream.print()
    else:
        stream.sink_to(FileSink.for_row_format(f"{output}/{name}", Encoder.simple_string_encoder()).build())
    stream.get_execution_environment().execute(name)


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    users = env.from_collection(USERS, Types.ROW_NAMED(["id", "info"], [Types.INT(), Types.STRING()]))
    show(users.map(one_more_login), output, "map")
    show(users.filter(lambda user: user.id == 1).map(one_more_login), output, "filter")
    by_country = users.map(country_and_logins).key_by(lambda pair: pair[0])
    show(by_country.reduce(lambda one, other: (one[0], one[1] + other[1])), output, "reduce")


if __name__ == "__main__":
    main(*sys.argv[1:])
