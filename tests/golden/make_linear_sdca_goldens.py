"""Ask TensorFlow for what the Estimators of `tests/estimator/sdca_models.py` give.

Run with a Python that has TensorFlow 1.15 (the file came from 1.15.5):
`python tests/golden/make_linear_sdca_goldens.py`. It writes `linear_sdca.json`.
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "estimator"))

import numpy as np
import sdca_models
import tensorflow as tf


def main():
    """Writes each case's numbers, to six digits."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    answers = {}
    for name in sdca_models.CASES:
        found = sdca_models.trained(tf, name, tempfile.mkdtemp())
        answers[name] = {
            key: [float(f"{each:.6g}") for each in np.ravel(value)] for key, value in found.items()
        }
    path = pathlib.Path(__file__).parent / "linear_sdca.json"
    text = json.dumps(answers, separators=(",", ":"), sort_keys=True)
    path.write_text(text.replace('},"', '},\n"') + "\n")


if __name__ == "__main__":
    main()
