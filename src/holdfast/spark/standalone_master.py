"""Whether a standalone cluster could give an application another executor, as its master's web page says."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

logger = logging.getLogger(__name__)

_SCHEME = "spark://"
#: Of the master's page. Applications know it where they share the master's spark-defaults.conf.
_PORT, _DEFAULT_PORT = "spark.master.ui.port", "8080"
_TIMEOUT_SECONDS = 1.0


class StandaloneMaster:
    """The master of an application whose number of executors is fixed. YARN and Kubernetes do not say what they have
    left; with dynamic allocation Spark itself decides how many it wants.
    """

    def __init__(self, pages: Sequence[str], application: str, conf: Mapping[str, str]) -> None:
        self._pages = pages
        self._application = application
        self._conf = conf

    @classmethod
    def of(cls, master: str, application: str, conf: Mapping[str, str]) -> StandaloneMaster | None:
        if not master.startswith(_SCHEME) or conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
            return None
        port = conf.get(_PORT, _DEFAULT_PORT)
        hosts = (address.rpartition(":")[0] for address in master.removeprefix(_SCHEME).split(","))
        return cls([f"http://{host}:{port}/json/" for host in hosts], application, conf)

    def exhausted(self, registered_cores: int) -> str | None:
        """Why no other executor can come, for an application whose executors have so many cores; None where one may, or
        where it is not known.
        """
        for page in self._pages:
            try:
                with urllib.request.urlopen(page, timeout=_TIMEOUT_SECONDS) as answer:
                    state = json.load(answer)
                reason = nothing_left(state, self._application, registered_cores, self._conf)
            except (OSError, ValueError, KeyError, TypeError) as error:
                # Another service may have the port, and a master may show nothing.
                logger.debug("The master does not say at %s what it has: %s", page, error)
                continue
            if reason is not None:
                return reason
        return None


def nothing_left(
    state: Mapping[str, Any], application: str, registered_cores: int, conf: Mapping[str, str]
) -> str | None:
    """Why a cluster in this state gives the application no other executor; None where it may."""
    # Of several masters only the one that leads knows its applications.
    own = next((app for app in state["activeapps"] if app["id"] == application), None)
    # Cores that nobody has registered yet are those of an executor that starts, or of a lost one not missed yet.
    if own is None or own["cores"] > registered_cores:
        return None
    cores, memory = cores_of_each(conf) or 1, own["memoryperexecutor"]
    most = conf.get("spark.cores.max", "")
    if most.isdigit() and own["cores"] + cores > int(most):
        return f"the application has {own['cores']} cores of the {most} that it may have (spark.cores.max)"
    alive = [worker for worker in state["workers"] if worker["state"] == "ALIVE"]
    if any(worker["coresfree"] >= cores and worker["memoryfree"] >= memory for worker in alive):
        return None
    return f"none of the {len(alive)} workers that are alive has {cores} cores and {memory} MB free"


def cores_of_each(conf: Mapping[str, str]) -> int | None:
    """How many cores each executor has; None where they may differ."""
    cores = conf.get("spark.executor.cores", "")
    return int(cores) if cores.isdigit() else None
