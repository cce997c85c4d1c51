"""Curves of a soak, as a PNG file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.soak.samples import Sample

_FIGURES = ("megabytes", "threads", "descriptors")


def plot(samples: Sequence[Sample], path: Path) -> None:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise SystemExit("plots need matplotlib: pip install 'holdfast[bench]'") from error
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(len(_FIGURES) + 3, 1, figsize=(9, 16), sharex=True)
    minutes = [sample.seconds / 60 for sample in samples]
    for axis, figure in zip(axes, _FIGURES, strict=False):
        for name in dict.fromkeys(name for sample in samples for name in sample.processes):
            values = [getattr(sample.processes.get(name), figure, None) for sample in samples]
            axis.plot(minutes, values, label=name, linewidth=1)
        axis.set_ylabel(figure)
    for axis, unit in zip(axes[len(_FIGURES) : -1], ("sizes", "files"), strict=True):
        for name in samples[-1].sizes:
            axis.plot(minutes, [getattr(sample, unit)[name] for sample in samples], label=name, linewidth=1)
        axis.set_ylabel("megabytes on disk" if unit == "sizes" else "files")
        axis.legend(fontsize=7)
    axes[-1].plot(minutes, [sample.sockets for sample in samples], linewidth=1)
    axes[-1].set_ylabel("sockets")
    axes[-1].set_xlabel("minutes")
    drawing.tight_layout()
    drawing.savefig(path, dpi=110)
