"""Ask TensorFlow 1.15 for what the programs of `tests/ops/table_class_programs.py` build and give.

Run with a Python that has it: `python tests/golden/make_table_class_goldens.py`. Writes
`tests/golden/lookup/classes.json`: programs with their nodes and values, mistakes with their errors.
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import lookup_ops

import table_class_programs
import table_programs

PATH = pathlib.Path(__file__).parent / "lookup" / "classes.json"


def main():
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        table_programs.write_files(pathlib.Path(folder))
        for name in table_class_programs.PROGRAMS:
            found[name] = table_class_programs.evaluate(tf, lookup_ops, name, pathlib.Path(folder))
    mistakes = {
        name: table_class_programs.mistake(tf, lookup_ops, name) for name in table_class_programs.MISTAKES
    }
    PATH.write_text(json.dumps({"programs": found, "mistakes": mistakes}, indent=0) + "\n")


if __name__ == "__main__":
    main()
