"""Let TensorFlow save a model, and serve flowstone's.

Run with a Python that has TensorFlow: `python tests/golden/make_saved_model_goldens.py DIR`, after `python
tests/training/saved_model_programs.py DIR` with flowstone saved its model in the folder DIR. With a second
argument ``check`` only flowstone's is served, and compared. The files in `tests/golden/saved_model` came from
1.15.5.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "saved_model"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "training"))

import tensorflow.compat.v1 as tf  # noqa: E402

import saved_model_programs  # noqa: E402

EXPECTED = [240.0, 80.0, 320.0]


def main() -> None:
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    for scope in (None, "there"):
        assert saved_model_programs.served(tf, sys.argv[1], scope) == EXPECTED
    if sys.argv[2:] == ["check"]:
        return
    shutil.rmtree(GOLDEN, ignore_errors=True)
    saved_model_programs.save(tf, str(GOLDEN))
    assert saved_model_programs.served(tf, str(GOLDEN)) == EXPECTED


if __name__ == "__main__":
    main()
