"""Answers of TensorFlow 1.15.5 to `ragged_programs.py`: writes ragged.json.

PYTHONPATH=tests/ops /path/to/tensorflow-1.15.5/bin/python tests/golden/make_ragged_goldens.py
"""

import json
import os

import tensorflow as tf

from ragged_programs import ERRORS, PROGRAMS, plain

found = {}
for name, program in PROGRAMS.items():
    with tf.Graph().as_default(), tf.Session() as session:
        results = program(tf)
        found[name] = [[plain(value), repr(x.shape)] for x, value in zip(results, session.run(results))]
errors = {}
for name, program in ERRORS.items():
    with tf.Graph().as_default():
        try:
            program(tf)
            errors[name] = None
        except Exception as error:
            errors[name] = type(error).__name__
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ragged.json"), "w") as file:
    json.dump({"values": found, "errors": errors}, file, indent=0)
    file.write("\n")
