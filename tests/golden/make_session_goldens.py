"""Ask TensorFlow 1.15 what happens in the programs of `tests/training/session_programs.py`.

`python tests/golden/make_session_goldens.py`, with a Python that has TensorFlow 1.15, writes
`training/sessions.txt`: a line ``# program`` for each program and then what it says, a line each.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "training" / "sessions.txt"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "training"))

import tensorflow.compat.v1 as tf  # noqa: E402

import session_programs  # noqa: E402


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    lines: list[str] = []
    for name in session_programs.PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            lines += ["# " + name, *session_programs.record(tf, name, folder)]
    GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
