"""Ask TensorFlow 1.15 what losses, metrics and training steps of `tf.contrib` give.

Run with a Python that has TensorFlow 1.15 (the files in `tests/golden/contrib` came from 1.15.5):
`python tests/golden/make_contrib_goldens.py`. Each file has what `answers` of a module gives.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
TESTS = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "contrib" / folder) for folder in ("layers", "losses", "metrics")]

import loss_programs  # noqa: E402
import metric_learning_programs  # noqa: E402
import metric_programs  # noqa: E402
import step_programs  # noqa: E402
import tensorflow as tf  # noqa: E402


def main() -> None:
    tf.logging.set_verbosity(tf.logging.FATAL)
    modules = {
        "losses": loss_programs,
        "metric_learning": metric_learning_programs,
        "metrics": metric_programs,
        "steps": step_programs,
    }
    for name, module in modules.items():
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in module.answers(tf).items()]
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        (TESTS / "golden" / "contrib" / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
