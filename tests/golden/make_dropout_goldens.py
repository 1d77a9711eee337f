"""Ask TensorFlow 1.15 for the nodes and the values of the calls in `dropout_forms.py`.

Run with a Python that has TensorFlow 1.15: `python tests/golden/make_dropout_goldens.py`. It writes
`ops/dropout.json`, the lines of each call's nodes, and `ops/dropout.npz`, the values.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from dropout_forms import FORMS, lines_of, values_of  # noqa: E402


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    lines = {name: lines_of(tf, name) for name in FORMS}
    (FOLDER / "ops" / "dropout.json").write_text(json.dumps(lines, indent=1) + "\n")
    values = {f"{name}/{i}": each for name in FORMS for i, each in enumerate(values_of(tf, name))}
    np.savez_compressed(FOLDER / "ops" / "dropout.npz", **values)


if __name__ == "__main__":
    main()
