"""Where clients find the leaders of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from holdfast.checkpoint.zookeeper.client import REFUSED, new_client, refusal
from holdfast.checkpoint.zookeeper.nodes import JobNodes, jobs_node
from holdfast.errors import StorageError
from holdfast.types.settings import ZooKeeperSettings

T = TypeVar("T")


def leader_address(settings: ZooKeeperSettings, job_id: str) -> str | None:
    """The address that the leader of a job published; None when no driver leads it, or its leader has no server.

    For any process. StorageError when ZooKeeper cannot be reached within the connection timeout.
    """
    return _ask(settings, lambda client: _read_address(client, settings, job_id), f"the leader of job {job_id} is")


def leader_addresses(settings: ZooKeeperSettings) -> dict[str, str]:
    """The addresses of the drivers that lead jobs, by job."""

    def read(client: KazooClient) -> dict[str, str]:
        try:
            jobs = client.get_children_async(jobs_node(settings)).get(timeout=_seconds(settings))
        except NoNodeError:
            return {}
        found = {job_id: _read_address(client, settings, job_id) for job_id in sorted(jobs)}
        return {job_id: address for job_id, address in found.items() if address is not None}

    return _ask(settings, read, "the leaders of jobs are")


def _read_address(client: KazooClient, settings: ZooKeeperSettings, job_id: str) -> str | None:
    try:
        node = JobNodes.of(settings, job_id).address
        content: bytes = client.get_async(node).get(timeout=_seconds(settings))[0]
        return content.decode()
    except NoNodeError:
        return None


def _ask(settings: ZooKeeperSettings, read: Callable[[KazooClient], T], what: str) -> T:
    client = new_client(settings)
    try:
        client.start(_seconds(settings))
        return read(client)
    except REFUSED as error:
        raise refusal(settings, error) from error
    except (KazooException, KazooTimeoutError) as error:
        raise StorageError(
            f"ZooKeeper at {settings.quorum} cannot tell where {what}: {type(error).__name__} {error}"
        ) from error
    finally:
        client.stop()
        client.close()


def _seconds(settings: ZooKeeperSettings) -> float:
    return settings.connection_timeout_ms / 1000
