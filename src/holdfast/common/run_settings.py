"""What ``holdfast run`` tells the program that it starts, through the program's environment."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.common.configuration import Configuration
from holdfast.errors import ConfigurationError

#: Set for every program that ``holdfast run`` starts: the settings of its command line, as a JSON object.
RUN_VARIABLE = "HOLDFAST_RUN"
#: Set where a program is only to tell its plan.
PLAN_VARIABLE = "HOLDFAST_PLAN_ONLY"
#: What a program that ``holdfast run`` started prints for each job, before the job's id.
SUBMITTED = "Job has been submitted with JobID "


def encode_run_settings(settings: Mapping[str, str]) -> str:
    return msgspec.json.encode(dict(settings)).decode()


def run_settings(environment: Mapping[str, str]) -> Configuration | None:
    """Settings of the command line; None for a program that was not started by it."""
    text = environment.get(RUN_VARIABLE)
    if not text:
        return None
    try:
        return Configuration.from_dict(msgspec.json.decode(text, type=dict[str, str]))
    except msgspec.MsgspecError as error:
        raise ConfigurationError(
            f"The variable {RUN_VARIABLE} is '{text}', which is not a JSON object of texts ({error}); it is set by "
            "'holdfast run' only"
        ) from error
