"""TFLearn's own tests over flowstone: `python tests/libraries/tflearn_tests.py [arguments of pytest]`.

All 20 of version 0.5.0 pass with TensorFlow 1.15.5, as do those of 0.3.2 but two, which download MNIST.
TFLearn needs a Pillow that still has `Image.ANTIALIAS`.
"""

from __future__ import annotations

from environment import Library, main

PACKAGES = ("Pillow==9.5.0", "six", "h5py", "scipy")
LIBRARIES = (
    Library("tflearn", "tflearn==0.5.0", tests=("tests",), expected=20, packages=PACKAGES),
    Library("tflearn-0.3", "tflearn==0.3.2", tests=("tests",), expected=18, packages=PACKAGES),
)

if __name__ == "__main__":
    raise SystemExit(max([main(library) for library in LIBRARIES]))
