"""Ask TensorFlow what the programs of `tests/ops/image_programs.py` give.

Run with a Python that has TensorFlow 1.15 (the files in `tests/golden/images` came from 1.15.5):
`python tests/golden/make_image_goldens.py`. ``programs.json`` has for each program its class of error, or the
static shape and type of each result; ``values.npz`` the values, under ``program/number``; ``nodes.txt`` below
a line ``# program`` the nodes of those whose names are compared.
"""

from __future__ import annotations

import json
import os
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "images")
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "ops"))

import numpy as np  # noqa: E402
import tensorflow  # noqa: E402

import image_programs  # noqa: E402

tf = tensorflow.compat.v1


def main():
    tf.logging.set_verbosity(tf.logging.FATAL)
    outcomes, values, lines = {}, {}, []
    for name in image_programs.PROGRAMS:
        kind, found = image_programs.outcome(tf, name)
        if kind == "error":
            outcomes[name] = found
            continue
        outcomes[name] = [[shape, dtype] for shape, dtype, _ in found]
        for number, (_, _, value) in enumerate(found):
            values[f"{name}/{number}"] = value
    for name in image_programs.NAMED:
        lines += [f"# {name}"] + image_programs.names(tf, name)
    os.makedirs(GOLDEN, exist_ok=True)
    with open(os.path.join(GOLDEN, "programs.json"), "w") as file:
        file.write(
            "{\n" + ",\n".join(json.dumps(k) + ": " + json.dumps(v) for k, v in outcomes.items()) + "\n}\n"
        )
    np.savez_compressed(os.path.join(GOLDEN, "values.npz"), **values)
    with open(os.path.join(GOLDEN, "nodes.txt"), "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
