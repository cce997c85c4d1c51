"""An application that is fit, for tests to change."""

from __future__ import annotations

from holdfast.doctor.application_settings import SETTINGS
from holdfast.doctor.facts import ApplicationFacts, Clock, DirectoryFacts, HostFacts, StorageFacts

GB = 1 << 30
PACKAGES = {"holdfast": "0.1.0", "pyspark": "4.3.0", "pyarrow": "20.0.0", "lmdb": "1.6.2"}
DIRECTORY = DirectoryFacts("/var/state", "holdfast.state.local-dir", 60 * GB, 100 * GB, "spark")
STORAGE = StorageFacts("s3://bucket/checkpoints", 0.2, True)
DRIVER = HostFacts("head", 1, "3.11.7", "/opt/python", "spark", PACKAGES, None, (DIRECTORY,), (STORAGE,))
EXECUTOR = HostFacts(
    "host-a", 7, "3.11.9", "/opt/python", "spark", PACKAGES, None, (DIRECTORY,), (STORAGE,), Clock(0.01, 0.05)
)
APPLICATION = ApplicationFacts(
    spark_version="4.3.0",
    java_version="17.0.15",
    master="spark://head:7077",
    is_local=False,
    settings={setting.key: setting.wanted for setting in SETTINGS},
    accelerations_off={},
    executors=(EXECUTOR,),
    executors_known=1,
)
