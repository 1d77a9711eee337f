"""Ask TensorFlow for what the programs of `tests/contrib/factorization` compute.

Run with a Python that has TensorFlow 1.15 and its contrib (the file came from 1.15.5):
`python tests/golden/make_contrib_factorization_goldens.py`. It writes `contrib/factorization.npz`.
"""

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "contrib" / "factorization"))

import clustering_programs
import numpy as np
import tensorflow as tf


def main():
    """Writes every array of every program, under the program's and its own name."""
    found = {}
    for name, (program, arguments) in clustering_programs.programs().items():
        for key, value in program(tf, **arguments).items():
            found[name + ": " + key] = np.asarray(value)
    path = pathlib.Path(__file__).parent / "contrib" / "factorization.npz"
    np.savez_compressed(str(path), **found)
    print(path, len(found), "arrays", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
