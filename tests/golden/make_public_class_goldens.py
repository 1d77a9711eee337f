"""Ask TensorFlow what the calls of `tests/public_names` give.

Run with a Python that has TensorFlow 1.15.5, with one that has 1.4.1 (which needs Python 3.6), and with one
that has 2.21: `python tests/golden/make_public_class_goldens.py`. Each answers the tables that name it as
their oracle, and leaves the other answers in the files as they are.
"""

import importlib
import json
import os
import sys
import warnings

FOLDER = os.path.dirname(os.path.abspath(__file__))
TABLES = os.path.join(os.path.dirname(FOLDER), "public_names")
ANSWERS = os.path.join(FOLDER, "public_names")
sys.path.insert(0, TABLES)
warnings.simplefilter("ignore")

import class_calls  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

if tf.__version__.startswith("2"):
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()


def main():
    """Writes the files."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    for module in class_calls.table_modules(TABLES):
        path = os.path.join(ANSWERS, module + ".json")
        found = {}
        if os.path.exists(path):
            with open(path) as file:
                found = json.load(file)
        names = []
        for table in importlib.import_module(module).TABLES:
            names += [table.name + "." + member for member in table.calls]
            if table.oracle == tf.__version__:
                answers = class_calls.answers(table, tf, np)
                found.update((table.name + "." + member, each) for member, each in answers.items())
        with open(path, "w") as file:
            file.write(class_calls.as_lines({name: found[name] for name in names if name in found}))
        print(f"{module}: {sum(name in found for name in names)} of {len(names)} calls answered")


if __name__ == "__main__":
    main()
