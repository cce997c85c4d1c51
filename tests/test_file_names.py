"""Names of files: two that are equal mean the same thing, so that whoever opens one knows what the other is."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import holdfast

SOURCES = Path(holdfast.__file__).parent

#: What a name means, and the folders that have it. Backends, connectors and services repeat each other's names
#: on purpose; ``common`` and ``datastream`` have PyFlink's module paths; a harness is called as what it drives.
MEANINGS: dict[str, tuple[str, set[str]]] = {
    "__main__": ("what `python -m` runs", {"cli", "demo"}),
    "accumulators": ("accumulators; PyFlink's path, and the things", {"common", "runtime"}),
    "address": ("where something outside is found", {"checkpoint/zookeeper", "connectors/sql"}),
    "aggregates": ("known aggregates; the public path, and the things", {"datastream", "runtime"}),
    "app": ("the application that a user talks to", {"cli", "server"}),
    "avro": ("Avro; PyFlink's path, and schemas as types", {"datastream/formats", "types"}),
    "backend": ("a state backend", {"state/heap", "state/lmdb", "state/rocksdb"}),
    "backends": ("state backends, and the suite for them", {"state", "testing/contracts"}),
    "client": ("the client library of a system outside", {"checkpoint/zookeeper", "connectors/kafka"}),
    "clock": ("the clock of processing time, and one for tests", {"types", "testing"}),
    "columns": ("values as Arrow columns", {"connectors/sql", "types"}),
    "completed_store": ("completed checkpoints that are kept", {"checkpoint", "checkpoint/zookeeper"}),
    "connected": ("two connected streams, and their harness", {"runtime", "testing"}),
    "driver": ("the driver process of a job", {"server", "testing/chaos"}),
    "end_record": ("the record that a job has ended", {"checkpoint", "checkpoint/zookeeper"}),
    "endpoints": ("sources and sinks as operators, and their harness", {"runtime", "testing"}),
    "engine": ("what runs the tasks of a job: the port, and Spark", {"job", "spark"}),
    "environment": ("what is around an operator, and around a test of a job", {"runtime", "testing"}),
    "epochs": ("epochs: their records in a store, and a harness's", {"state/lmdb", "state/rocksdb", "testing"}),
    "errors": ("errors of a package", {"", "cli"}),
    "examination": ("the examination of an application, and its part in Spark", {"cli", "spark"}),
    "execution_mode": ("stream or batch; PyFlink's path, and the choice", {"datastream", "graph"}),
    "executors": ("the executors of an application", {"spark", "testing/chaos"}),
    "failures": ("errors of tasks on their way to the driver", {"runtime", "spark"}),
    "functions": ("functions of users, and what calls them", {"datastream", "runtime", "runtime/windowing"}),
    "ids": ("numbers of checkpoints", {"checkpoint", "checkpoint/zookeeper"}),
    "image": ("the content of a store as one image", {"state/heap", "state/lmdb"}),
    "inputs": ("what a job, or an operator under test, reads", {"spark", "testing"}),
    "jdbc": ("PyFlink's names for SQL sinks", {"connectors/sql", "datastream/connectors"}),
    "job": ("a job: as the job master gets it, and that of the demo", {"job", "demo"}),
    "keyed": ("what is behind a key_by, and how harnesses show it", {"runtime", "testing"}),
    "leadership": ("who leads a job", {"checkpoint", "checkpoint/zookeeper"}),
    "metrics": ("metrics of functions; PyFlink's path, and the things", {"", "runtime"}),
    "operator": ("an operator", {"runtime", "runtime/async_io", "runtime/windowing"}),
    "options": (
        "options",
        {"common", "connectors/file_sink", "state/lmdb", "state/rocksdb", "testing"},
    ),
    "output_tag": ("tags of side outputs; PyFlink's path, and the things", {"datastream", "runtime"}),
    "parquet": ("Parquet; PyFlink's path, and files", {"connectors/files", "datastream/formats"}),
    "program": ("the program of a user", {"cli", "runtime", "testing"}),
    "publishing": ("the driver's half of a sink", {"connectors/file_sink", "connectors/kafka", "connectors/sql"}),
    "reader": ("one subtask of a source", {"connectors/files", "connectors/kafka"}),
    "registry": ("what is known by name", {"state", "types"}),
    "rehearsal": ("a restore that is found out without restoring", {"job", "runtime"}),
    "restore": ("state from a snapshot", {"datastream", "state", "state/lmdb", "state/rocksdb"}),
    "sent_files": ("what a program brings to its tasks, sent by Spark or by a test", {"spark", "testing"}),
    "serialization": ("values as bytes; PyFlink's path, and the things", {"common", "connectors"}),
    "serializers": ("values of state as bytes", {"runtime/windowing", "state"}),
    "services": ("what a job needs outside of its driver", {"checkpoint", "testing/chaos"}),
    "session": ("a session with a system outside", {"checkpoint/zookeeper", "spark"}),
    "settings": ("settings that were read", {"server", "types"}),
    "sink": ("a sink", {"connectors/file_sink", "connectors/kafka", "connectors/sql", "runtime"}),
    "snapshot": ("what is stored of state", {"state/lmdb", "state/rocksdb", "testing"}),
    "source": ("a source", {"connectors/files", "connectors/kafka", "runtime"}),
    "store": ("a local store", {"state", "state/heap", "state/lmdb", "state/rocksdb"}),
    "timers": ("timers", {"runtime/windowing", "state"}),
    "typeinfo": ("``Types``; PyFlink's path, and the things", {"common", "types"}),
    "types": ("PyFlink's paths of types", {"common", "table"}),
    "utils": ("PyFlink's paths of what is refused", {"common", "datastream"}),
    "watch": ("whether a source may have more", {"connectors/files", "connectors/kafka"}),
    "window": ("PyFlink's paths of windows", {"datastream", "table"}),
    "windows": ("windows, and their harness", {"runtime/windowing", "testing"}),
}


def equal_names() -> dict[str, set[str]]:
    """The folders of each name that several files have."""
    folders = defaultdict[str, set[str]](set)
    for file in SOURCES.rglob("*.py"):
        if file.stem != "__init__":
            folder = file.parent.relative_to(SOURCES).as_posix()
            folders[file.stem].add("" if folder == "." else folder)
    return {name: found for name, found in folders.items() if len(found) > 1}


def test_equal_names_mean_the_same_thing() -> None:
    known = {name: folders for name, (_, folders) in MEANINGS.items()}
    assert equal_names() == known, (
        "Two files of one name. If they mean the same thing, say here what it is; else give the new one another name."
    )
