from __future__ import annotations

from holdfast.datastream import connectors
from holdfast.datastream.connectors import base, file_system, number_seq


def test_the_public_names_are_these():
    assert file_system.__all__ == [
        "BucketAssigner",
        "FileSink",
        "FileSource",
        "FileSourceBuilder",
        "OutputFileConfig",
        "RollingPolicy",
        "StreamFormat",
    ]
    assert number_seq.__all__ == ["NumberSequenceSource", "SequenceSource"]
    assert base.__all__ == ["Sink", "Source"]
    assert connectors.__all__ == sorted([*file_system.__all__, *number_seq.__all__, *base.__all__])
    assert all(hasattr(connectors, name) for name in connectors.__all__)
