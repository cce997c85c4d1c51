"""Python, packages, clocks and disks of driver and executors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.doctor.facts import Clock
from holdfast.doctor.findings import Level, worst
from holdfast.doctor.judge_hosts import judge_clocks, judge_disk, judge_disks, judge_driver, judge_hosts, judge_python
from tests.doctor.samples import DIRECTORY, DRIVER, EXECUTOR, GB, PACKAGES

MB = 1 << 20


def levels(findings):
    return [finding.level for finding in findings]


class TestPython:
    def test_the_same_everywhere(self):
        (finding,) = judge_python(DRIVER, EXECUTOR)
        assert (finding.level, finding.subject) == (Level.GREEN, "executor host-a:7")
        assert worst(judge_hosts(DRIVER, [EXECUTOR])) is Level.GREEN

    def test_another_minor_version(self):
        (finding,) = judge_python(DRIVER, replace(EXECUTOR, python="3.12.1"))
        assert (finding.level, finding.seen) == (Level.RED, "Python 3.12.1, and the driver has 3.11.7")

    def test_without_holdfast(self):
        without = replace(
            EXECUTOR, packages={**PACKAGES, "holdfast": None}, import_failure="ModuleNotFoundError: no holdfast"
        )
        (finding,) = judge_python(DRIVER, without)
        assert finding.level is Level.RED and "ModuleNotFoundError: no holdfast" in finding.seen
        assert "/opt/python on host-a" in finding.advice

    @pytest.mark.parametrize(
        ("name", "version", "level", "seen"),
        [
            ("holdfast", "0.2.0", Level.RED, "holdfast 0.2.0 (driver: 0.1.0)"),
            ("pyspark", "4.2.0", Level.RED, "pyspark 4.2.0 (driver: 4.3.0)"),
            ("lmdb", None, Level.RED, "lmdb missing (driver: 1.6.2)"),
            ("pyarrow", "19.0.0", Level.YELLOW, "pyarrow 19.0.0 (driver: 20.0.0)"),
        ],
    )
    def test_other_packages(self, name, version, level, seen):
        (finding,) = judge_python(DRIVER, replace(EXECUTOR, packages={**PACKAGES, name: version}))
        assert (finding.level, finding.seen) == (level, seen)

    def test_the_driver(self):
        assert judge_driver(DRIVER).level is Level.GREEN
        assert "holdfast 0.1.0" in judge_driver(DRIVER).seen
        missing = judge_driver(replace(DRIVER, packages={**PACKAGES, "lmdb": None}))
        assert missing.level is Level.RED and "lmdb missing" in missing.seen
        broken = judge_driver(replace(DRIVER, import_failure="ImportError: x"))
        assert broken.level is Level.RED and "ImportError: x" in broken.seen


class TestClocks:
    @pytest.mark.parametrize(
        ("ahead", "error", "level"),
        [
            (0.5, 0.1, Level.GREEN),
            (1.05, 0.1, Level.GREEN),
            (1.2, 0.1, Level.YELLOW),
            (-1.2, 0.1, Level.YELLOW),
            (30.05, 0.1, Level.YELLOW),
            (31.0, 0.1, Level.RED),
            (-3600.0, 0.1, Level.RED),
            (31.0, 40.0, Level.GREEN),
        ],
    )
    def test_skew_beyond_what_the_measurement_may_be_wrong(self, ahead, error, level):
        assert levels(judge_clocks(DRIVER, [replace(EXECUTOR, clock=Clock(ahead, error))])) == [level]

    def test_the_farthest_is_told(self):
        late = replace(EXECUTOR, host="host-b", clock=Clock(-7.0, 0.1))
        (finding,) = judge_clocks(DRIVER, [EXECUTOR, late])
        assert finding.seen == "host-b is 7.00 s behind the driver (±0.10 s)"
        assert "time to live" in finding.advice

    def test_the_host_of_the_driver_has_its_clock(self):
        assert not list(judge_clocks(DRIVER, [replace(EXECUTOR, host="head", clock=Clock(99.0, 0.1))]))
        assert not list(judge_clocks(DRIVER, [replace(EXECUTOR, clock=None)]))


class TestDisks:
    @pytest.mark.parametrize(
        ("free", "total", "level"),
        [
            (60 * GB, 100 * GB, Level.GREEN),
            (5 * GB, 40 * GB, Level.GREEN),
            (5 * GB - 1, 40 * GB, Level.YELLOW),
            (9 * GB, 100 * GB, Level.YELLOW),
            (500 * MB, 4 * GB, Level.YELLOW),
            (500 * MB - 1, 4 * GB, Level.RED),
            (0, GB, Level.RED),
        ],
    )
    def test_free_space(self, free, total, level):
        assert judge_disk("the driver", DRIVER, replace(DIRECTORY, free=free, total=total)).level is level

    def test_one_that_cannot_be_written(self):
        finding = judge_disk("the driver", DRIVER, replace(DIRECTORY, failure="Permission denied"))
        assert (finding.level, finding.seen) == (Level.RED, "/var/state: Permission denied")
        assert "user spark" in finding.advice

    @pytest.mark.parametrize(
        ("owner", "level"), [("spark", Level.GREEN), ("root", Level.GREEN), ("", Level.GREEN), ("eve", Level.YELLOW)]
    )
    def test_owners(self, owner, level):
        assert judge_disk("the driver", DRIVER, replace(DIRECTORY, owner=owner)).level is level

    def test_what_processes_of_a_host_share_is_told_once(self):
        neighbour = replace(EXECUTOR, process=8)
        told = judge_disks([("the driver", DRIVER), ("a", EXECUTOR), ("b", neighbour)])
        assert [finding.subject for finding in told] == [
            "holdfast.state.local-dir of the driver", "holdfast.state.local-dir of a",
        ]
