"""The daemon of Python workers, spoken to as Spark does."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.spark.daemon_with_plain_tasks import INIT_MESSAGE, task_head

SECRET = "a secret"


class Worker:
    """A connection to the daemon, which is what Spark has of a worker."""

    def __init__(self, channel: socket.socket, known_as: int) -> None:
        self.channel = channel
        self.known_as = known_as

    def begin(self, partition: int, letter: bytes = b"p") -> int:
        """The process that has begun the task."""
        self.channel.sendall(task_head(partition) + letter)
        return number(self.channel)

    def end(self) -> None:
        """The end of a task that goes on."""
        self.channel.sendall(b".")
        assert self.channel.recv(1) == b"!"

    def broadcasts(self, partition: int) -> int:
        """How many broadcast variables a task on it has."""
        self.begin(partition, b"n")
        return number(self.channel)

    def closed(self) -> bool:
        return self.channel.recv(1) == b""


class Spark:
    def __init__(self, daemon: subprocess.Popen[bytes], address: int | str) -> None:
        self.daemon = daemon
        self._address = address

    def connect(self, secret: str = SECRET) -> Worker:
        if isinstance(self._address, str):
            channel = socket.socket(socket.AF_UNIX)
            channel.connect(self._address)
            channel.settimeout(20)
            return Worker(channel, number(channel))
        channel = socket.create_connection(("127.0.0.1", self._address), timeout=20)
        pid = number(channel)
        channel.sendall(struct.pack("!i", len(secret)) + secret.encode())
        answer = channel.recv(number(channel))
        assert answer == (b"ok" if secret == SECRET else b"err")
        return Worker(channel, pid)

    def kill(self, worker: Worker) -> None:
        assert self.daemon.stdin is not None
        self.daemon.stdin.write(struct.pack("!i", worker.known_as))
        self.daemon.stdin.flush()


def number(channel: socket.socket) -> int:
    received = channel.recv(4, socket.MSG_WAITALL)
    assert len(received) == 4, "the connection has ended"
    return int(struct.unpack("!i", received)[0])


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def ends(pid: int) -> None:
    deadline = time.monotonic() + 20
    while runs(pid):
        assert time.monotonic() < deadline, f"process {pid} has not ended"
        time.sleep(0.01)


@contextmanager
def started(patience: float = 10, **environment: str) -> Iterator[Spark]:
    program = [sys.executable, "-m", "tests.spark.daemon_with_plain_tasks", "pyspark.worker"]
    told = {"PATIENCE": str(patience), "PYTHON_WORKER_FACTORY_SECRET": SECRET, "SPARK_REUSE_WORKER": "1", **environment}
    daemon = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **told},
        cwd=Path(__file__).parents[2],
    )
    assert daemon.stdin is not None and daemon.stdout is not None
    address = struct.unpack("!i", daemon.stdout.read(4))[0]
    try:
        yield Spark(daemon, daemon.stdout.read(address).decode() if "PYTHON_UNIX_DOMAIN_ENABLED" in told else address)
    finally:
        daemon.stdin.close()
        try:
            daemon.wait(20)
        finally:
            daemon.kill()
            daemon.stdout.close()


@pytest.fixture
def spark() -> Iterator[Spark]:
    with started() as spark:
        yield spark


def test_a_partition_stays_with_its_process_on_whatever_connection(spark: Spark) -> None:
    workers = [spark.connect() for _ in range(3)]
    first = {partition: workers[partition].begin(partition) for partition in range(3)}
    assert len(set(first.values())) == 3
    rng = random.Random(7)
    for _ in range(60):
        rng.shuffle(workers)
        assert {partition: workers[partition].begin(partition) for partition in range(3)} == first


def test_tasks_that_run_at_once_have_a_process_each_though_their_partition_is_the_same() -> None:
    """As those of two jobs are."""
    with started(patience=0.02) as spark:
        workers = [spark.connect() for _ in range(3)]
        for worker in workers:
            worker.begin(0)
        at_once = [worker.begin(0, b"w") for worker in workers]
        assert len(set(at_once)) == 3
        for worker in workers:
            worker.end()
        assert len({worker.begin(partition, b"w") for partition, worker in enumerate(workers)}) == 3


def test_a_partition_whose_process_is_busy_goes_to_the_one_that_has_been_idle_for_longest(spark: Spark) -> None:
    one, two, three = (spark.connect() for _ in range(3))
    processes = [worker.begin(partition) for partition, worker in enumerate((one, two, three))]
    assert one.begin(3, b"w") == processes[0]
    assert three.begin(1) == processes[1]
    assert two.begin(0) == processes[2]


@pytest.mark.parametrize("head", [b"\0\0\0\1", struct.pack("!iii", INIT_MESSAGE - 1, 5, 1)])
def test_a_task_that_begins_in_another_way_is_run_by_any_process(spark: Spark, head: bytes) -> None:
    worker = spark.connect()
    worker.begin(0)
    worker.channel.sendall(head)
    rest = task_head(0)[len(head) :]
    worker.channel.sendall(rest + b"p")
    assert number(worker.channel) == worker.known_as


def test_a_second_function_of_a_stage_stays_in_its_process_too() -> None:
    """Its tasks begin while those of the first have the same partition."""
    with started(patience=0.02) as spark:
        workers = [spark.connect() for _ in range(4)]
        rng = random.Random(7)
        seen = set()
        for _ in range(6):
            rng.shuffle(workers)
            seen.add(tuple(worker.begin(number // 2, b"w") for number, worker in enumerate(workers)))
            for worker in workers:
                worker.end()
            # The daemon hears of it a moment later.
            time.sleep(0.5)
        assert len(seen) == 1


def test_broadcast_variables_go_with_their_connection(spark: Spark) -> None:
    one, two = spark.connect(), spark.connect()
    of_0 = one.begin(0, b"v")
    assert two.begin(1, b"v") != of_0
    two.begin(0, b"v")
    assert [one.broadcasts(0), one.broadcasts(1), two.broadcasts(0), two.broadcasts(1)] == [1, 1, 2, 2]
    one.begin(1, b"d")
    assert [one.broadcasts(0), two.broadcasts(1)] == [0, 2]


def test_a_connection_stays_with_the_process_that_has_its_encrypted_broadcast_variables(spark: Spark) -> None:
    one, two = spark.connect(), spark.connect()
    of_0, of_1 = one.begin(0, b"e"), two.begin(1)
    assert two.begin(0) == of_1
    assert (one.begin(1), one.broadcasts(1)) == (of_0, 1)
    # Until it has none.
    assert one.begin(1, b"d") == of_0
    assert (two.begin(1), one.begin(1)) == (of_1, of_1)


def test_a_connection_whose_encrypted_broadcast_variables_are_lost_ends(spark: Spark) -> None:
    worker = spark.connect()
    process = worker.begin(0, b"e")
    time.sleep(0.5)
    os.kill(process, signal.SIGKILL)
    assert worker.closed()


def test_the_daemon_serves_others_when_it_hears_of_an_end_and_of_the_next_task_at_once(spark: Spark) -> None:
    one, two, three = (spark.connect() for _ in range(3))
    of_0 = one.begin(0, b"w")
    spark.daemon.send_signal(signal.SIGSTOP)
    two.channel.sendall(task_head(0) + b"w")
    one.channel.sendall(b".")
    time.sleep(0.2)
    spark.daemon.send_signal(signal.SIGCONT)
    assert number(two.channel) == of_0
    assert three.begin(1) != of_0
    spark.kill(two)
    ends(of_0)


def test_the_process_that_has_the_connection_is_killed(spark: Spark) -> None:
    """It is another than the one that Spark knows, which goes on."""
    one, two = spark.connect(), spark.connect()
    of_0, of_1 = one.begin(0), two.begin(1)
    assert two.begin(0, b"w") == of_0
    assert one.begin(1, b"w") == of_1
    spark.kill(two)
    ends(of_0)
    assert two.closed()
    one.end()
    assert one.begin(1) == of_1


def test_a_worker_that_waits_is_killed(spark: Spark) -> None:
    one, two = spark.connect(), spark.connect()
    of_0, of_1 = one.begin(0), two.begin(1)
    spark.kill(one)
    assert one.closed()
    ends(of_0)
    assert two.begin(1) == of_1


def test_a_connection_ends_with_the_process_that_has_it(spark: Spark) -> None:
    one, two = spark.connect(), spark.connect()
    of_0 = one.begin(0)
    assert two.begin(0, b"x") == of_0
    assert two.closed()
    assert one.begin(0) != of_0
    assert spark.connect().begin(1) != of_0


def test_a_worker_whose_idle_process_was_killed_gets_another(spark: Spark) -> None:
    worker = spark.connect()
    process = worker.begin(0)
    # It answers before it is idle.
    time.sleep(0.5)
    os.kill(process, signal.SIGKILL)
    ends(process)
    replacement = worker.begin(0)
    assert replacement != process
    assert worker.begin(0) == replacement


def test_a_process_ends_when_spark_closes_a_connection(spark: Spark) -> None:
    one, two = spark.connect(), spark.connect()
    of_0, of_1 = one.begin(0), two.begin(1)
    two.channel.close()
    # Spark would drop the other worker as well if the process that it knows ended.
    ends(two.known_as)
    assert {of_0, of_1} == {one.known_as, two.known_as}
    assert one.begin(1) == one.known_as


def test_a_process_whose_task_failed_ends_with_its_connection(spark: Spark) -> None:
    worker = spark.connect()
    process = worker.begin(0, b"f")
    assert runs(process)
    worker.channel.close()
    ends(process)


def test_without_reuse_a_process_has_one_task() -> None:
    with started(SPARK_REUSE_WORKER="") as spark:
        worker = spark.connect()
        process = worker.begin(0)
        worker.channel.shutdown(socket.SHUT_WR)
        assert worker.closed()
        ends(process)


def test_another_secret_is_refused(spark: Spark) -> None:
    stranger = spark.connect("another secret")
    assert stranger.closed()
    ends(stranger.known_as)
    assert spark.connect().begin(0)


def test_sockets_of_the_file_system(tmp_path: Path) -> None:
    with started(PYTHON_UNIX_DOMAIN_ENABLED="True", PYTHON_WORKER_FACTORY_SOCK_DIR=str(tmp_path)) as spark:
        one, two = spark.connect(), spark.connect()
        of_0 = one.begin(0)
        assert two.begin(0) == of_0
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["its input ends", "terminated", "killed"])
def test_processes_end_with_their_daemon(spark: Spark, how: str) -> None:
    busy, idle, unused = spark.connect(), spark.connect(), spark.connect()
    processes = {idle.begin(0), busy.begin(1, b"w"), idle.begin(0), unused.known_as}
    assert len(processes) == 3
    if how == "its input ends":
        assert spark.daemon.stdin is not None
        spark.daemon.stdin.close()
        assert spark.daemon.wait(20) == 0
    else:
        spark.daemon.send_signal(signal.SIGTERM if how == "terminated" else signal.SIGKILL)
        spark.daemon.wait(20)
    if how == "killed":
        # As with Spark's own daemon, a task that runs is left to end.
        busy.channel.sendall(b".")
    for process in processes:
        ends(process)
