"""What tests of the documentation share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docs.programs import ProgramHost


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramHost]:
    with ProgramHost(tmp_path_factory.mktemp("host")) as host:
        yield host
