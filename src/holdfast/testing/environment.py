"""The environment of a test of a whole job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

import cloudpickle

from holdfast.common.configuration import Configuration
from holdfast.common.job_client import JobClient
from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment


class _RememberingEnvironment(StreamExecutionEnvironment):
    """Knows the jobs that it has started."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.jobs: list[JobClient] = []

    def execute_async(self, job_name: str | None = None) -> JobClient:
        job = super().execute_async(job_name)
        self.jobs.append(job)
        return job


@contextmanager
def environment_for_a_while(
    settings: Mapping[str, str], module: ModuleType | None = None
) -> Iterator[StreamExecutionEnvironment]:
    """An environment, whose jobs are cancelled at the end where they still run. Functions of ``module`` travel as they
    are, not by their name: workers cannot import a test module that pytest has imported in its own way.
    """
    environment = _RememberingEnvironment(Configuration.from_dict(dict(settings)))
    by_value = module is not None and module.__name__ not in cloudpickle.list_registry_pickle_by_value()
    if module is not None and by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield environment
    finally:
        for job in environment.jobs:
            if job.is_running():
                job.cancel().result()
        if module is not None and by_value:
            cloudpickle.unregister_pickle_by_value(module)
