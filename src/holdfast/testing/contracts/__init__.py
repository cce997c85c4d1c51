"""What every state backend, sink, source and store of completed checkpoints must do, as classes of tests for pytest.

A suite is subclassed, and told by a fixture what it is to test:

    class TestMyBackend(StateBackendContract):
        @pytest.fixture
        def backend(self) -> StateBackend:
            return MyBackend()

Holdfast's own implementations pass the same suites. This package imports pytest; nothing else of ``holdfast`` imports
this package.
"""

from holdfast.testing.contracts.backends import StateBackendContract
from holdfast.testing.contracts.completed_stores import CompletedStoreContract
from holdfast.testing.contracts.native_images import NativeImageContract
from holdfast.testing.contracts.sinks import ExternalSinkContract, SinkContract
from holdfast.testing.contracts.sources import SourceContract

__all__ = [
    "CompletedStoreContract",
    "ExternalSinkContract",
    "NativeImageContract",
    "SinkContract",
    "SourceContract",
    "StateBackendContract",
]
