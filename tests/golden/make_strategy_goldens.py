"""Writes strategies/values.json: what TensorFlow 1.15's strategies of two replicas give on CPU devices.

Run with TensorFlow 1.15.5: ``python tests/golden/make_strategy_goldens.py``.
"""

import json
import os
import sys
import tempfile

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "strategies"))

import programs  # noqa: E402 - its folder is on the path from here on

if __name__ == "__main__":
    found = {}
    for program in programs.PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            found[program.__name__] = programs.listed(program(tf, folder))
    with open(os.path.join(HERE, "strategies", "values.json"), "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)
        file.write("\n")
