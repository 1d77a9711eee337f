"""Ask TensorFlow what it answers to users' mistakes.

Run with a Python that has TensorFlow 2 (`tests/golden/bad_input.json` came from 2.21), with
``TF_USE_LEGACY_KERAS=1``: `python tests/golden/make_bad_input_goldens.py`. The mistakes are in
`tests/mistakes`. Kept are, by kind and name, the class of the error and, for an error of a step, the name
of the node.

Ends with status 1 if a message lacks the words that its mistake expects.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import tensorflow.compat.v1 as tf

from mistakes import building, running, session
from mistakes.arrays import missing_words

GOLDEN = pathlib.Path(__file__).parent / "bad_input.json"


def main() -> int:
    tf.disable_v2_behavior()
    answers: dict[str, dict[str, Any]] = {"building": {}, "running": {}, "session": {}}
    wrong = []
    for kind, table, fail in (
        ("building", building.BUILDING, building.fail_building),
        ("running", running.RUNNING, running.fail_running),
        ("session", session.SESSION, session.fail_in_session),
    ):
        for name in table:
            error = fail(tf, name)
            missing = missing_words(error, table[name][-1])
            if error is None or missing:
                wrong.append(f"{kind}, {name}: {missing} not in {str(error)[:300]!r}")
            answers[kind][name] = [class_name(error), getattr(getattr(error, "op", None), "name", None)]
    GOLDEN.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    print("\n".join(wrong))
    return 1 if wrong else 0


def class_name(error: BaseException | None) -> str:
    """The public class: TensorFlow's internal ones count as what they are made from."""
    for one in type(error).__mro__:
        if one.__module__ == "builtins" or hasattr(tf.errors, one.__name__):
            return one.__name__
    return ""


if __name__ == "__main__":
    sys.exit(main())
