"""Ask TensorFlow 1.15 what the programs of `tests/contrib/layers/older_columns.py` give.

Run with a Python that has TensorFlow 1.15 with contrib (``golden/contrib/older_columns.json`` came from
1.15.5): `python tests/golden/make_older_column_goldens.py`.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "contrib"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "contrib" / "layers"))

import older_columns  # noqa: E402
import tensorflow as tf  # noqa: E402


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = {name: older_columns.run(tf, name, folder) for name in older_columns.PROGRAMS}
        found["errors"] = older_columns.refused(tf, folder)
    lines = [f'"{name}": {json.dumps(value)}' for name, value in found.items()]
    (GOLDEN / "older_columns.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
