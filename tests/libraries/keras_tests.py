"""Keras 2.3.1's own tests over flowstone: `python tests/libraries/keras_tests.py [arguments of pytest]`.

With TensorFlow 1.15.5 and NumPy 1.18, the same tests and options, 1113 pass. Two of these cannot here: one
of a function of NumPy that is no longer written in Python (`generic_utils_test`, argmax), and one of selu to
the last bit, where TensorFlow's is the less exact. The other seven failures and four errors are the same with
TensorFlow: five tests of `backend_test` ask for Theano or CNTK, two of `vis_utils_test` for pydot, and the
four of `TestCosineSimilarity` have a `setup` that pytest calls with its method. Left out are tests of the
documentation, which the archive has only in part, of data sets, which are downloaded, and of the package's
names.
"""

from __future__ import annotations

from environment import Library, main

LIBRARY = Library(
    name="keras",
    requirement="keras==2.3.1",
    tests=("tests/keras", "tests/test_*.py"),
    without=("tests/test_api.py", "tests/keras/datasets", "tests/test_multiprocessing.py"),
    expected=1111,
    packages=(
        "keras-applications==1.0.8",
        "keras-preprocessing==1.1.2",
        "h5py",
        "pyyaml",
        "scipy",
        "six",
        "pandas",
        "scikit-learn",
        "flaky",
        "requests",
    ),
    environment={"KERAS_BACKEND": "tensorflow"},
)

if __name__ == "__main__":
    raise SystemExit(main(LIBRARY))
