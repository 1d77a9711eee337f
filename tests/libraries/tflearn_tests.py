"""TFLearn 0.5.0's own tests over flowstone: `python tests/libraries/tflearn_tests.py [arguments of pytest]`.

All 20 pass with TensorFlow 1.15.5. TFLearn needs a Pillow that still has `Image.ANTIALIAS`.
"""

from __future__ import annotations

from environment import Library, main

LIBRARY = Library(
    name="tflearn",
    requirement="tflearn==0.5.0",
    tests=("tests",),
    expected=20,
    packages=("Pillow==9.5.0", "six", "h5py", "scipy"),
)

if __name__ == "__main__":
    raise SystemExit(main(LIBRARY))
