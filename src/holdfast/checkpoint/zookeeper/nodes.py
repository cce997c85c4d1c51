"""Where a job is in ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.types.settings import ZooKeeperSettings


def jobs_node(settings: ZooKeeperSettings) -> str:
    """A child, named by its id, for every job."""
    return "/" + "/".join(part for path in (settings.root, settings.cluster_id) for part in path.split("/") if part)


@dataclass(frozen=True)
class JobNodes:
    """The nodes of one job, all below ``root``."""

    root: str

    @classmethod
    def of(cls, settings: ZooKeeperSettings, job_id: str) -> JobNodes:
        above = jobs_node(settings)
        return cls(f"{above}/{job_id}" if above != "/" else f"/{job_id}")

    @property
    def ballots(self) -> str:
        """An ephemeral, numbered child for every driver that leads or wants to; the one of the least number leads."""
        return f"{self.root}/ballots"

    @property
    def leader(self) -> str:
        """A LeaderRecord. Every attempt writes it anew: its version is what changes are fenced with."""
        return f"{self.root}/leader"

    @property
    def address(self) -> str:
        """Where the leader's server listens. Ephemeral."""
        return f"{self.root}/address"

    @property
    def last_id(self) -> str:
        """The number of the last checkpoint that was begun."""
        return f"{self.root}/last-id"

    @property
    def checkpoints(self) -> str:
        """A child, named by its number, for every completed checkpoint that is kept."""
        return f"{self.root}/checkpoints"

    @property
    def outcome(self) -> str:
        """How the job ended, the last time that it did: for drivers that wait."""
        return f"{self.root}/outcome"

    @property
    def ended(self) -> str:
        """The node that says that the job must not begin again."""
        return f"{self.root}/ended"
