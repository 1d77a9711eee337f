"""Ask TensorFlow for the names of the nodes and variables of the programs in `name_programs.py`.

Run with a Python that has TensorFlow 1.15: `python tests/golden/make_name_goldens.py` (the file
`names/programs.txt` came from 1.15.5). The file has for each program a line ``# program``, a line
``variable NAME`` for each variable and a line ``NAME TYPE`` for each node of the forward part.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "names" / "programs.txt"
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import tensorflow.compat.v1 as tf  # noqa: E402

from name_programs import PROGRAMS, name_lines  # noqa: E402


def main() -> None:
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    lines: list[str] = []
    for name, program in PROGRAMS.items():
        lines += [f"# {name}", *name_lines(tf, program)]
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
