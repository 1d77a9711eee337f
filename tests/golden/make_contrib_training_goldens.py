"""Answers of TensorFlow 1.15.5's `tf.contrib.training.HParams`.

    $TF115_PYTHON tests/golden/make_contrib_training_goldens.py

Each line of `contrib/hparam_calls.txt` is an expression in which `T` is `tf.contrib.training`, and `then(x,
change, ask)` gives `ask(x)` after `change(x)`. Written: its repr, or the class of its error, a line each.
"""

from __future__ import annotations

import json
from pathlib import Path

import tensorflow.contrib.training as T

HERE = Path(__file__).parent / "contrib"


def then(value, change, ask):
    change(value)
    return ask(value)


def main() -> None:
    answers = []
    for line in (HERE / "hparam_calls.txt").read_text().splitlines():
        try:
            answers.append([line, "value", repr(eval(line, {"T": T, "then": then}))])
        except Exception as error:
            answers.append([line, "error", type(error).__name__, str(error)])
    (HERE / "hparam_answers.json").write_text(json.dumps(answers, indent=0) + "\n")


if __name__ == "__main__":
    main()
