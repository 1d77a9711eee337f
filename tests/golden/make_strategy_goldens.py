"""Writes strategies/*values.json: what TensorFlow 1.15's strategies of two replicas give on CPU devices.

Run with TensorFlow 1.15.5: ``python tests/golden/make_strategy_goldens.py [values | keras_values]``.
"""

import json
import os
import sys
import tempfile

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "strategies"))

import keras_programs  # noqa: E402 - its folder is on the path from here on

import programs  # noqa: E402

FILES = {"values": programs.PROGRAMS, "keras_values": keras_programs.PROGRAMS}


def write(name):
    found = {}
    for program in FILES[name]:
        with tempfile.TemporaryDirectory() as folder:
            found[program.__name__] = programs.listed(program(tf, folder))
    with open(os.path.join(HERE, "strategies", f"{name}.json"), "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or FILES:
        write(name)
