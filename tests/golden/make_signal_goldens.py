"""Ask TensorFlow for the results of signal functions.

Run with a Python that has TensorFlow 2 (the file came from 2.21):
`python tests/golden/make_signal_goldens.py`. Writes `tests/golden/signals.npz`: for each program of
`tests/ops/signal_programs.py` its value and, of those that have one, the gradient of its input
("name/gradient").
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import numpy as np
import tensorflow.compat.v1 as tf

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ops"))

import signal_programs  # noqa: E402

tf.disable_v2_behavior()
tf.spectral.idct = tf.signal.idct


def main() -> None:
    found: dict[str, np.ndarray] = {}
    for name, (function, x) in signal_programs.PROGRAMS.items():
        with tf.Graph().as_default(), tf.Session() as session:
            given = signal_programs.holder(tf, name, x)
            y = function(tf, given)
            found[name] = session.run(y, {given: x})
            flow = signal_programs.flow_of(name, found[name].shape, found[name].dtype)
            try:
                (gradient,) = tf.gradients(y, [given], [tf.constant(flow)])
                if gradient is not None:
                    found[f"{name}/gradient"] = session.run(gradient, {given: x})
            except (LookupError, ValueError, tf.errors.InvalidArgumentError):
                continue  # of three dimensions; and where a transform takes a part of its input
    np.savez_compressed(HERE / "signals.npz", **found)


if __name__ == "__main__":
    main()
