"""Ask TensorFlow 1.15 what losses and metrics are and what their nodes are called.

Run with a Python that has TensorFlow 1.15 (the files came from 1.15.5), from the repository's root:
`python tests/golden/make_loss_goldens.py`. ``losses.npz`` and ``metrics.npz`` in `tests/golden/layers` have
what `loss_programs.values` and `metric_programs.values` give; ``losses.txt`` and ``metrics.txt``, below a
line ``# program``, what their `node_lines` give.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "layers"
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from tests.layers import loss_programs, metric_programs  # noqa: E402


def write_lines(name: str, programs: dict[str, list[str]]) -> None:
    lines = [line for program, found in programs.items() for line in (f"# {program}", *found)]
    (GOLDEN / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    losses = {name: loss_programs.values(tf, name) for name in loss_programs.LOSSES}
    np.savez_compressed(GOLDEN / "losses.npz", **losses)
    metrics = {name: metric_programs.values(tf, name) for name in metric_programs.PROGRAMS}
    np.savez_compressed(GOLDEN / "metrics.npz", **metrics)
    programs = loss_programs.PROGRAMS.items()
    write_lines("losses.txt", {name: loss_programs.node_lines(tf, build) for name, build in programs})
    names = metric_programs.PROGRAMS
    write_lines("metrics.txt", {name: metric_programs.node_lines(tf, name) for name in names})


if __name__ == "__main__":
    main()
