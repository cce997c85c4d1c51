"""One examination: gathers what is known of an application, from everywhere, and has it judged."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from holdfast.common import options
from holdfast.common.configuration import Configuration
from holdfast.common.settings_parser import ParsedSettings, parse_settings
from holdfast.doctor.facts import ApplicationFacts, HostFacts, Request
from holdfast.doctor.findings import Finding, red
from holdfast.doctor.hosts import look_here
from holdfast.doctor.judge_hosts import judge_hosts
from holdfast.doctor.judge_services import ServerFacts, judge_server, judge_zookeeper
from holdfast.doctor.judge_spark import judge_spark
from holdfast.doctor.judge_storage import judge_no_checkpoints, judge_storages
from holdfast.doctor.needed_packages import packages_for
from holdfast.errors import ConfigurationError, HoldfastError
from holdfast.server.binding import bind
from holdfast.server.settings import ListenSettings, server_enabled, server_settings
from holdfast.spark.examination import examine, session_to_examine
from holdfast.spark.failures import gist
from holdfast.storage.check import leave_marker, remove_marker
from holdfast.storage.filesystem import Storage
from holdfast.types.settings import ZooKeeperSettings

_SERVER_PACKAGES = ("starlette", "uvicorn", "prometheus_client")


@dataclass(frozen=True)
class Examination:
    """The examination of the application that a program with this configuration, and these DataFrames, would run in."""

    configuration: Configuration
    data_frames: Sequence[Any] = ()

    def findings(self) -> list[Finding]:
        try:
            settings = parse_settings(self.configuration)
        except ConfigurationError as error:
            return [red("configuration", str(error), "docs/reference/configuration.md has all options.")]
        storages = _storages(settings)
        driver, application, refusal = self._facts(settings, tuple(storages))
        executors = application.executors if application is not None else ()
        found = list(judge_spark(application)) if application is not None else [_no_session(refusal)]
        return [
            *found,
            *judge_hosts(driver, executors),
            *judge_no_checkpoints(settings.checkpoint.enabled, settings.checkpoint.directory is not None),
            *judge_storages(storages, driver, executors),
            *self._services(settings),
        ]

    def _facts(
        self, settings: ParsedSettings, storages: tuple[str, ...]
    ) -> tuple[HostFacts, ApplicationFacts | None, Exception | None]:
        """The driver is examined even where there is no session."""
        request = Request(
            storages,
            state_directory=settings.backend.local_dir,
            spark_directories=settings.spark.conf.get("spark.local.dir"),
            packages=packages_for(settings.backend.name, storages),
        )
        try:
            session = session_to_examine(settings.spark, self.data_frames)
        except Exception as error:
            return look_here(request), None, error
        request = replace(request, spark_directories=session.sparkContext.getConf().get("spark.local.dir"))
        driver = look_here(request)
        try:
            with _markers(driver) as markers:
                return driver, examine(session, settings.spark, replace(request, markers=markers)), None
        except ConfigurationError as error:
            return driver, None, error

    def _services(self, settings: ParsedSettings) -> Iterator[Finding]:
        if server_enabled(self.configuration, os.environ):
            try:
                yield judge_server(server_facts(server_settings(self.configuration).listen))
            except ConfigurationError as error:
                yield red("job server", str(error), "docs/how-to/operate-jobs.md says how a server is set up.")
        if settings.zookeeper is not None:
            yield judge_zookeeper(settings.zookeeper.quorum, zookeeper_failure(settings.zookeeper))


def _storages(settings: ParsedSettings) -> dict[str, str]:
    """The storages that settings name: the setting, by absolute URI."""
    named = (
        (settings.checkpoint.directory, options.CHECKPOINT_DIRECTORY.key),
        (settings.checkpoint.savepoint_directory, options.SAVEPOINT_DIRECTORY.key),
    )
    return {Storage.absolute(uri): key for uri, key in reversed(named) if uri}


def _no_session(refusal: Exception | None) -> Finding:
    if isinstance(refusal, HoldfastError):
        return red("Spark", str(refusal), "Nothing else of Spark could be looked at.")
    advice = "Check spark.master and that it answers, and the log of Spark above. Nothing else of Spark was looked at."
    return red("Spark", f"no session: {gist(str(refusal)) or type(refusal).__name__}", advice)


@contextmanager
def _markers(driver: HostFacts) -> Iterator[dict[str, str]]:
    """Files of the driver in the storages that it can use, for as long as the block runs."""
    markers: dict[str, str] = {}
    try:
        for storage in driver.storages:
            if storage.failure is None:
                markers[storage.uri] = leave_marker(storage.uri)
        yield markers
    finally:
        for uri, marker in markers.items():
            remove_marker(uri, marker)


def server_facts(settings: ListenSettings) -> ServerFacts:
    facts = ServerFacts(settings.address, settings.loopback)
    missing = tuple(name for name in _SERVER_PACKAGES if importlib.util.find_spec(name) is None)
    if missing:
        return replace(facts, missing_packages=missing)
    try:
        with bind(settings) as bound:
            return replace(facts, port=bound.getsockname()[1])
    except ConfigurationError as error:
        return replace(facts, failure=str(error))


def zookeeper_failure(settings: ZooKeeperSettings) -> str | None:
    """It is asked something that every driver may ask."""
    try:
        # Imported here: it needs an extra that most applications do without.
        from holdfast.checkpoint.zookeeper.address import leader_addresses

        leader_addresses(settings)
    except HoldfastError as error:
        return str(error)
    except ModuleNotFoundError as error:
        return f"{error}: pip install 'holdfast[zookeeper]'"
    return None
