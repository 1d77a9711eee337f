"""Ask TensorFlow 1.15 what the programs of `tests/contrib/layers/contrib_programs.py` give.

Run with a Python that has TensorFlow 1.15 (the files in `tests/golden/contrib` came from 1.15.5):
`python tests/golden/make_contrib_layer_goldens.py`. ``layers.npz`` has for each program one vector, all that
`layer_programs.run` gives in its order. Below a line ``# program``, ``layers.txt`` has what `graph_lines`
gives.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
TESTS = pathlib.Path(__file__).parents[1]
GOLDEN = TESTS / "golden" / "contrib"
sys.path[:0] = [str(TESTS / "layers"), str(TESTS / "contrib" / "layers")]

import contrib_programs  # noqa: E402
import layer_programs  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    programs, collections = contrib_programs.PROGRAMS, contrib_programs.COLLECTIONS
    arrays = {}
    lines = []
    for name in programs:
        lines += [f"# {name}", *layer_programs.graph_lines(tf, name, programs, collections)]
        found = layer_programs.run(tf, name, programs).values()
        arrays[name] = np.concatenate([np.asarray(value, np.float64).ravel() for value in found])
    GOLDEN.mkdir(exist_ok=True)
    arrays = {name: values.astype(np.float32) for name, values in arrays.items()}
    np.savez_compressed(str(GOLDEN / "layers.npz"), **arrays)
    (GOLDEN / "layers.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
