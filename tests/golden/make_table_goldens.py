"""Ask TensorFlow for what the programs of `tests/ops/table_programs.py` give.

Run with a Python that has TensorFlow 2: `python tests/golden/make_table_goldens.py`. Writes
`tests/golden/lookup/programs.json`: by program, its outcomes. Of a message only what the op itself says is
kept, and the folder of the files is `FOLDER` in it.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
import tempfile
from typing import Any

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

import tensorflow.compat.v1 as tf

import table_programs

PATH = pathlib.Path(__file__).parent / "lookup" / "programs.json"


def shortened(outcome: Any, folder: str) -> Any:
    """The outcome without what surrounds the op's own message."""
    if outcome[0] == "gives":
        return outcome
    kind, name, message = outcome
    message = re.sub(r"(?s)^.*?Node: '[^']*'\n", "", message)
    message = re.sub(r"(?s)(\n\t | for '\{\{node|\n\nOriginal| \[Op:|\nRegistered).*", "", message)
    return [kind, name, message.replace(folder, "FOLDER").strip()]


def main() -> None:
    tf.disable_v2_behavior()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        table_programs.write_files(pathlib.Path(folder))
        for name in table_programs.PROGRAMS:
            outcomes = table_programs.evaluate(tf, tf.raw_ops, name, pathlib.Path(folder))
            found[name] = [shortened(outcome, folder) for outcome in outcomes]
    PATH.parent.mkdir(exist_ok=True)
    lines = [
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, outcomes)) + "\n]"
        for name, outcomes in found.items()
    ]
    PATH.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
