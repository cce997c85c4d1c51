from __future__ import annotations

import pytest

from holdfast.checkpoint.shared_files import FileOrigin, left_by_earlier_attempts, origin_of, referenced_files
from holdfast.state.handles import RawKeyedSnapshot
from holdfast.storage.filesystem import temporary_path
from tests.checkpoint.samples import handle, keyed, keyed_file, metadata, record, snapshot


def test_references_are_the_files_of_all_operators_and_not_what_is_inline() -> None:
    subtasks = [
        snapshot(0, keyed=keyed(keyed_file("shared/1-1-a"), keyed_file("shared/2-5-a"))),
        snapshot(1, operator_state=handle("chk-5/2-list")),
        snapshot(2, operator_state=handle(inline=b"few"), raw_operator=handle("chk-5/2-raw")),
        snapshot(3, raw_keyed=RawKeyedSnapshot(0, 127, handle("chk-5/2-groups"))),
    ]
    other = record("other", [snapshot(0, "other", keyed=keyed(keyed_file("shared/2-5-b")))])
    assert referenced_files(metadata(5, [record(subtasks=subtasks), other])) == {
        "shared/1-1-a",
        "shared/2-5-a",
        "chk-5/2-list",
        "chk-5/2-raw",
        "chk-5/2-groups",
        "shared/2-5-b",
    }


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("chk-12/3-name-with-dashes", FileOrigin(attempt=3, checkpoint_id=12)),
        ("shared/3-12-name", FileOrigin(attempt=3, checkpoint_id=12)),
        pytest.param(temporary_path("shared/3-12-name"), FileOrigin(attempt=3, checkpoint_id=12), id="temporary"),
        ("chk-12/_metadata", None),
        ("chk-12/_committing", None),
        ("shared/readme", None),
        ("taskowned/3-12-name", None),
        ("attempts/3", None),
        ("chk-x/3-name", None),
    ],
)
def test_origins(path: str, origin: FileOrigin | None) -> None:
    assert origin_of(path) == origin


def test_a_sweep_takes_what_earlier_attempts_left_and_nothing_else() -> None:
    leftovers = {
        "shared/1-1-a",
        "chk-2/1-list",
        temporary_path("chk-3/4-list"),
        temporary_path("chk-3/_metadata"),
    }
    staying = {
        "shared/1-1-needed",
        "chk-2/1-needed",
        "shared/5-9-written-now",
        "chk-9/5-written-now",
        temporary_path("chk-9/5-written-now"),
        "chk-2/_metadata",
        "chk-2/_committing",
        "chk-2/notes-of-a-user",
        "shared/notes",
    }
    needed = {"shared/1-1-needed", "chk-2/1-needed"}
    assert left_by_earlier_attempts(leftovers | staying, needed, running_attempt=5) == leftovers
