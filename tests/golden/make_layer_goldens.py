"""Ask TensorFlow what the programs of `tests/layers/recurrences.py` give.

Run with a Python that has TensorFlow 2 (the files in `tests/golden/layers` came from 2.21) and its old Keras,
with ``TF_USE_LEGACY_KERAS=1``: `python tests/golden/make_layer_goldens.py`. ``recurrences.npz`` has for each
program one vector, all that `recurrences.run` gives in its order. Below a line ``# program``,
``recurrences.txt`` has what `shape_lines` gives, and for some programs what `node_lines` gives in 1.15.5.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "layers"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "layers"))

import numpy as np  # noqa: E402
import recurrences  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402


def main() -> None:
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    arrays: dict[str, np.ndarray] = {}
    lines: list[str] = []
    for name in recurrences.PROGRAMS:
        arrays[name] = np.concatenate([value.ravel() for value in recurrences.run(tf, name).values()])
        lines += [f"# {name}", *recurrences.shape_lines(tf, name)]
        if name in recurrences.NAMED:
            lines += recurrences.node_lines(tf, name)
    GOLDEN.mkdir(exist_ok=True)
    np.savez_compressed(GOLDEN / "recurrences.npz", **arrays)
    (GOLDEN / "recurrences.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
