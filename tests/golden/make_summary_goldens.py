"""Ask TensorFlow what the summaries of `tests/ops/summaries/summary_programs.py` hold.

Run with a Python that has TensorFlow: `python tests/golden/make_summary_goldens.py`; the file
`tests/golden/summaries/summaries.json` came from 1.15.5.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "summaries"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops" / "summaries"))

import tensorflow.compat.v1 as tf  # noqa: E402

import summary_programs  # noqa: E402


def pixels(data: bytes) -> object:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.image.decode_png(data))


def main() -> None:
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    GOLDEN.mkdir(exist_ok=True)
    found = {name: summary_programs.run(tf, name, pixels) for name in summary_programs.PROGRAMS}
    lines = [f"{json.dumps(name)}: {json.dumps(result)}" for name, result in found.items()]
    (GOLDEN / "summaries.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
