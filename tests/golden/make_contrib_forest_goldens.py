"""Ask TensorFlow 1.15 how the forests of `tests/contrib/tensor_forest/forest_programs.py` grow.

Run with a Python that has TensorFlow 1.15 and its contrib (the file came from 1.15.5):
`python tests/golden/make_contrib_forest_goldens.py`. It writes `contrib/forests.json`, and
`contrib/forest_checkpoint`, a forest as TensorFlow saves it.
"""

import json
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "contrib" / "tensor_forest"))

import forest_programs
import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent / "contrib"


def main():
    """Writes what every forest was after each step."""
    found = {name: forest_programs.train(tf, **params) for name, params in forest_programs.cases().items()}
    found["saved"] = forest_programs.save(tf, str(FOLDER / "forest_checkpoint" / "forest"))
    (FOLDER / "forests.json").write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
