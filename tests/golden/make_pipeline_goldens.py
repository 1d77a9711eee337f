"""Ask TensorFlow for the nodes of the programs in `tests/training/pipeline_programs.py`.

Run with a Python that has TensorFlow 2 (`training/pipelines.txt` came from 2.21), with
``TF_USE_LEGACY_KERAS=1``: `python tests/golden/make_pipeline_goldens.py`. Seeds of ops, which 2.21 numbers
otherwise than 1.15, are left out. The file has a line ``# program``
for each program and then its description, a line a node.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "training" / "pipelines.txt"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "training"))

import tensorflow.compat.v1 as tf  # noqa: E402

import pipeline_programs  # noqa: E402


def main() -> None:
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    lines: list[str] = []
    for name in pipeline_programs.PROGRAMS:
        lines += [f"# {name}", *pipeline_programs.described(tf, name)]
    GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
