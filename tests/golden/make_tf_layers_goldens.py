"""Ask TensorFlow 1.15 what the programs of `tests/layers/layer_programs.py` give.

Run with a Python that has TensorFlow 1.15 (the files in `tests/golden/layers` came from 1.15.5):
`python tests/golden/make_tf_layers_goldens.py`. ``tf_layers.npz`` has for each program whose kernels the CPU
has one vector, all that `layer_programs.run` gives in its order. Below a line ``# program``,
``tf_layers.txt`` has what `graph_lines` gives.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "layers"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "layers"))

import layer_programs as programs  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    arrays = {}
    lines = []
    for name in programs.PROGRAMS:
        lines += [f"# {name}", *programs.graph_lines(tf, name)]
        if name not in programs.GRAPHS_ONLY:
            found = programs.run(tf, name).values()
            arrays[name] = np.concatenate([np.asarray(value, np.float64).ravel() for value in found])
    GOLDEN.mkdir(exist_ok=True)
    arrays = {name: values.astype(np.float32) for name, values in arrays.items()}
    np.savez_compressed(str(GOLDEN / "tf_layers.npz"), **arrays)
    (GOLDEN / "tf_layers.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
