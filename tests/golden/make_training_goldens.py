r"""Ask TensorFlow for the golden trajectories of optimisers, schedules and moving averages.

Run with a Python that has TensorFlow 2 (the files in `tests/golden/training` came from 2.21), with
``TF_USE_LEGACY_KERAS=1``: `python tests/golden/make_training_goldens.py`. What is run is in
`tests/training/trajectories.py`; values are kept as arrays in ``.npz`` files under ``case|variable``, the
first index being the step (of a schedule, one array a case; ``\`` stands for ``/``), nodes as text, one
line a node, below a line ``# case``. Those of polynomial schedules and of Ftrl without its later `beta` are
TensorFlow 1.15's.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "training"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "training"))

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

import trajectories  # noqa: E402


def main() -> None:
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    arrays: dict[str, np.ndarray] = {}
    lines: list[str] = []
    for case in trajectories.cases():
        arrays.update(stacked("/".join(case), trajectories.run(tf, case)))
        if case[-1] == "float32" and case[-2] != trajectories.LOSS:
            lines += [f"# {'/'.join(case)}", *trajectories.node_lines(tf, case)]
    write("optimizers", arrays, lines)

    arrays, lines = {}, []
    for name in trajectories.schedules(tf):
        rates, nodes = trajectories.schedule_values(tf, name)
        arrays[name] = np.array(rates)
        lines += [f"# {name}", *nodes]
    write("schedules", arrays, lines)

    arrays, lines = {}, []
    for name in trajectories.AVERAGES:
        for kind in trajectories.KINDS:
            values, nodes = trajectories.average_values(tf, name, kind)
            arrays.update(stacked(f"{name}/{kind}", values))
            lines += [f"# {name}/{kind}", *nodes]
    write("averages", arrays, lines)


def stacked(case: str, steps: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """One array a variable, its values step by step, under ``case|variable``."""
    return {f"{case}|{name}": np.stack([step[name] for step in steps]) for name in steps[0]}


def write(name: str, arrays: dict[str, np.ndarray], lines: list[str]) -> None:
    GOLDEN.mkdir(exist_ok=True)
    np.savez_compressed(
        GOLDEN / f"{name}.npz", **{key.replace("/", "\\"): value for key, value in arrays.items()}
    )
    (GOLDEN / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
