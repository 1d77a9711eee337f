"""Ask TensorFlow for what the programs of `tests/contrib/factorization` compute.

Run with a Python that has TensorFlow 1.15 and its contrib (the file came from 1.15.5):
`python tests/golden/make_contrib_factorization_goldens.py`. It writes `contrib/factorization.npz`
and `contrib/wals.npz`.
"""

import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "contrib" / "factorization"))

import clustering_programs
import numpy as np
import tensorflow as tf
import wals_programs


def write(name, results):
    """Writes the arrays of each program, under the program's and its own name."""
    found = {
        program + ": " + key: np.asarray(value)
        for program, arrays in results.items()
        for key, value in arrays.items()
    }
    path = pathlib.Path(__file__).parent / "contrib" / name
    np.savez_compressed(str(path), **found)
    print(path, len(found), "arrays", path.stat().st_size, "bytes")


def main():
    """Runs the programs."""
    programs = clustering_programs.programs()
    write("factorization.npz", {name: program(tf, **given) for name, (program, given) in programs.items()})
    cases = wals_programs.CASES
    write(
        "wals.npz",
        {name: wals_programs.factorization(tf, tempfile.mkdtemp(), *case) for name, case in cases.items()},
    )


if __name__ == "__main__":
    main()
