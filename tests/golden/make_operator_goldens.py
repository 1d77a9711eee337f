"""Ask TensorFlow for linear operators: what they say of themselves, and their dense matrices.

Run with a Python that has TensorFlow 2 (the files came from 2.21):
`python tests/golden/make_operator_goldens.py`. Writes `tests/golden/operators.json`, what each operator of
`tests/ops/operator_programs.py` says of itself, and `operators.npz`, its dense matrices.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import numpy as np
import tensorflow.compat.v1 as tf

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ops"))

import operator_programs  # noqa: E402

tf.disable_v2_behavior()

if __name__ == "__main__":
    said, dense = {}, {}
    for name, program in operator_programs.PROGRAMS.items():
        with tf.Graph().as_default(), tf.Session() as session:
            operator = program(tf)
            said[name] = operator_programs.facts(operator)
            dense[name] = session.run(operator.to_dense())
    (HERE / "operators.json").write_text(json.dumps(said, indent=1) + "\n")
    np.savez_compressed(HERE / "operators.npz", **dense)
