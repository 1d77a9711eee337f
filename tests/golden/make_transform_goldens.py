"""Ask TensorFlow for the results of functions of signals and of matrices.

Run with a Python that has TensorFlow 2 (the files came from 2.21):
`python tests/golden/make_transform_goldens.py`. Writes `tests/golden/signals.npz` and `matrices.npz`: for
each program of `tests/ops/signal_programs.py` and `matrix_programs.py` its value and, of those that have one,
the gradient of its input ("name/gradient").
"""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Any

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import numpy as np
import tensorflow.compat.v1 as tf

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ops"))

import matrix_programs  # noqa: E402
import signal_programs  # noqa: E402

tf.disable_v2_behavior()
tf.spectral.idct = tf.signal.idct


def answers(programs: dict[str, Any]) -> dict[str, np.ndarray]:
    """The value of each program, and the gradient of its input where there is one."""
    found: dict[str, np.ndarray] = {}
    for name, (function, x) in programs.items():
        with tf.Graph().as_default(), tf.Session() as session:
            given = signal_programs.holder(tf, name, x)
            y = function(tf, given)
            found[name] = session.run(y, {given: x})
            flow = signal_programs.flow_of(name, found[name].shape, found[name].dtype)
            try:
                (gradient,) = tf.gradients(y, [given], [tf.constant(flow)])
                if gradient is not None:
                    found[f"{name}/gradient"] = session.run(gradient, {given: x})
            except (LookupError, ValueError, NotImplementedError, tf.errors.InvalidArgumentError):
                continue  # real transforms of three dimensions, or of a part of their input; some factors
    return found


if __name__ == "__main__":
    for name, programs in (("signals", signal_programs.PROGRAMS), ("matrices", matrix_programs.PROGRAMS)):
        np.savez_compressed(HERE / f"{name}.npz", **answers(programs))
