"""Settings from ``config.yaml`` or ``flink-conf.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from holdfast.common.configuration import Configuration
from holdfast.errors import ConfigurationError

_DIRECTORY_VARIABLES = ("HOLDFAST_CONF_DIR", "FLINK_CONF_DIR")
_FILE_NAMES = ("config.yaml", "flink-conf.yaml")


def find_config_file(environment: Mapping[str, str], working_directory: Path) -> Path | None:
    """The file to read, if any. A directory that is named by a variable must have one."""
    for variable in _DIRECTORY_VARIABLES:
        named = environment.get(variable)
        if named:
            found = _file_in(Path(named))
            if found is None:
                raise ConfigurationError(
                    f"{variable} is '{named}', which has neither {_FILE_NAMES[0]} nor {_FILE_NAMES[1]}; "
                    f"put one there or unset {variable}"
                )
            return found
    return _file_in(working_directory / "conf") or _file_in(working_directory)


def read_config_file(path: Path) -> Configuration:
    """The settings of a ``config.yaml``, nested or flat, or of a ``flink-conf.yaml`` of ``key: value`` lines."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"The configuration file {path} cannot be read: {error}") from error
    values = _lines(path, text) if path.name == "flink-conf.yaml" else _yaml(path, text)
    return Configuration.from_dict(dict(values))


def _file_in(directory: Path) -> Path | None:
    return next((directory / name for name in _FILE_NAMES if (directory / name).is_file()), None)


def _yaml(path: Path, text: str) -> Iterator[tuple[str, str]]:
    try:
        # All scalars stay text: YAML would read 'off' as False, and each option knows best what its text means.
        content = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"The configuration file {path} is not YAML: {error}") from error
    if content is None or content == "":
        return iter(())
    if not isinstance(content, dict):
        raise ConfigurationError(f"The configuration file {path} must have 'key: value' entries at its top level")
    return _flatten(content, "")


def _flatten(content: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            yield f"{prefix}{key}", ";".join(map(str, value))
        elif value != "":
            yield f"{prefix}{key}", value


def _lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip()
        if not content:
            continue
        key, separator, value = content.partition(": ")
        if not separator and content.endswith(":"):
            continue
        if not separator:
            raise ConfigurationError(f"Line {number} of {path} is '{content}'; expected 'key: value'")
        yield key.strip(), value.strip()
