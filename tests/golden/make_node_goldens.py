"""Ask TensorFlow for the nodes of the programs in `node_programs.py` and its neighbours.

Run with a Python that has TensorFlow 1.15, from the repository: `python tests/golden/make_node_goldens.py`
(the file `names/nodes.txt.xz` came from 1.15.5). The file has for each program a line ``# program`` and a
line for each node, in the order of their making; see `node_lines`.
"""

from __future__ import annotations

import lzma
import os
import sys
from pathlib import Path

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = Path(__file__).parent / "names" / "nodes.txt.xz"
sys.path.insert(0, str(Path(__file__).parents[2]))

import tensorflow as tf  # noqa: E402
from tests.golden import (  # noqa: E402
    function_node_programs,  # noqa: F401
    gradient_node_programs,  # noqa: F401
    model_programs,  # noqa: F401
    recurrent_programs,  # noqa: F401
    trained_programs,  # noqa: F401
)
from tests.golden.node_programs import PROGRAMS, node_lines  # noqa: E402


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    lines = []
    for name, build in PROGRAMS.items():
        lines += [f"# {name}", *node_lines(tf, build)]
    GOLDEN.write_bytes(lzma.compress("\n".join(lines).encode() + b"\n"))


if __name__ == "__main__":
    main()
