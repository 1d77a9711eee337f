"""Ask TensorFlow what the input pipelines of `tests/data/pipelines.py` give.

Run with a Python that has TensorFlow: `python tests/golden/make_data_goldens.py`; the file
`tests/golden/data/pipelines.json` came from 1.15.5.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "data"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "data"))

import tensorflow.compat.v1 as tf  # noqa: E402

import pipelines  # noqa: E402


def main() -> None:
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    GOLDEN.mkdir(exist_ok=True)
    found = {name: pipelines.run(tf, name) for name in pipelines.PROGRAMS}
    lines = [f"{json.dumps(name)}: {json.dumps(result)}" for name, result in found.items()]
    (GOLDEN / "pipelines.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
