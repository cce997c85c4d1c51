"""Where clients find the leader of a job."""

from __future__ import annotations

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from holdfast.checkpoint.zookeeper.nodes import JobNodes
from holdfast.errors import StorageError
from holdfast.types.settings import ZooKeeperSettings


def leader_address(settings: ZooKeeperSettings, job_id: str) -> str | None:
    """The address that the leader of a job published; None when no driver leads it, or its leader has no server.

    For any process. StorageError when ZooKeeper cannot be reached within the connection timeout.
    """
    seconds = settings.connection_timeout_ms / 1000
    client = KazooClient(hosts=settings.quorum, timeout=settings.session_timeout_ms / 1000)
    try:
        client.start(seconds)
        content: bytes = client.get_async(JobNodes.of(settings, job_id).address).get(timeout=seconds)[0]
        return content.decode()
    except NoNodeError:
        return None
    except (KazooException, KazooTimeoutError) as error:
        raise StorageError(
            f"ZooKeeper at {settings.quorum} cannot tell where the leader of job {job_id} is: "
            f"{type(error).__name__} {error}"
        ) from error
    finally:
        client.stop()
        client.close()
