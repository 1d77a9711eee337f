"""Ask TensorFlow 1.15 what the programs of `tests/layers/feature_columns` give.

Run with a Python that has TensorFlow 1.15 (``golden/layers/feature_columns.json`` came from 1.15.5):
`python tests/golden/make_feature_column_goldens.py`. The file has what `column_programs.run` gives for each
program, and `column_errors.run`.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "layers"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "layers" / "feature_columns"))

import column_errors  # noqa: E402
import column_programs  # noqa: E402
import tensorflow as tf  # noqa: E402


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = {name: column_programs.run(tf, name, folder) for name in column_programs.PROGRAMS}
        found["errors"] = column_errors.run(tf, folder)
    lines = [f'"{name}": {json.dumps(value)}' for name, value in found.items()]
    path = GOLDEN / "feature_columns.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
