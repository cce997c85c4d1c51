"""The jars that a mini cluster of HDFS needs: of Maven Central, downloaded once into the user's cache, and checked."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import urllib.request
from pathlib import Path

from tests.kit.unavailable import Unavailable

_CENTRAL = "https://repo1.maven.org/maven2"
_HADOOP = "3.4.2"
_DOWNLOAD_SECONDS = 300
#: Hadoop's shaded jars hold their own dependencies but for the five others. By path, with SHA-256.
_JARS = {
    f"org/apache/hadoop/hadoop-client-minicluster/{_HADOOP}/hadoop-client-minicluster-{_HADOOP}.jar": (
        "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77"
    ),
    f"org/apache/hadoop/hadoop-client-api/{_HADOOP}/hadoop-client-api-{_HADOOP}.jar": (
        "607c0299f4df33013bd0a0f37c8cf255c635bbaddd247b8fec68c210cc17d19f"
    ),
    f"org/apache/hadoop/hadoop-client-runtime/{_HADOOP}/hadoop-client-runtime-{_HADOOP}.jar": (
        "18d071c7f72f8a946677b398a57af9c7afa2dd41a81023c310f99373fec200b3"
    ),
    "org/slf4j/slf4j-api/2.0.17/slf4j-api-2.0.17.jar": (
        "7b751d952061954d5abfed7181c1f645d336091b679891591d63329c622eb832"
    ),
    "org/slf4j/slf4j-simple/2.0.17/slf4j-simple-2.0.17.jar": (
        "ddfea59ac074c6d3e24ac2c38622d2d963895e17f70b38ed4bdae4d780be6964"
    ),
    "commons-logging/commons-logging/1.3.5/commons-logging-1.3.5.jar": (
        "6d7a744e4027649fbb50895df9497d109f98c766a637062fe8d2eabbb3140ba4"
    ),
    "javax/xml/bind/jaxb-api/2.3.1/jaxb-api-2.3.1.jar": (
        "88b955a0df57880a26a74708bc34f74dcaf8ebf4e78843a28b50eae945732b06"
    ),
    "junit/junit/4.13.2/junit-4.13.2.jar": "8e495b634469d64fb8acfa3495a065cbacc8a0fff55ce1e31007be4c16dc57d3",
}


def hdfs_jars() -> Path:
    """The folder that has them, and nothing else."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast" / f"hadoop-{_HADOOP}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with home.with_suffix(".lock").open("w") as lock:
            # Several test processes ask at once, and one downloads.
            fcntl.flock(lock, fcntl.LOCK_EX)
            for path, checksum in _JARS.items():
                target = home / path.rpartition("/")[2]
                if not target.exists():
                    _download(f"{_CENTRAL}/{path}", checksum, target)
    except OSError as cause:
        raise Unavailable(f"Hadoop {_HADOOP} cannot be had from Maven Central ({cause})") from cause
    return home


def _download(url: str, checksum: str, target: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=target.parent.parent, delete=False) as draft:
        try:
            with urllib.request.urlopen(url, timeout=_DOWNLOAD_SECONDS) as response:
                shutil.copyfileobj(response, draft)
            draft.flush()
            found = hashlib.sha256(Path(draft.name).read_bytes()).hexdigest()
            if found != checksum:
                raise AssertionError(f"{url} has the SHA-256 {found}, expected {checksum}")
            Path(draft.name).rename(target)
        except BaseException:
            Path(draft.name).unlink()
            raise
