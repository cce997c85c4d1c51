from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.installed import ACME, installed


@pytest.fixture(scope="module", autouse=True)
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package is installed while the tests of a module run. They import it inside of them."""
    with installed(ACME, tmp_path_factory.mktemp("installed")):
        yield
