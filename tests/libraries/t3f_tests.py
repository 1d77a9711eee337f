"""t3f's own tests over flowstone: `python tests/libraries/t3f_tests.py [arguments of pytest]`.

All 262 of version 1.1.0 pass with TensorFlow 1.15.5. Three compare float32 values more closely than they are
exact, and fail here by a few digits: one of Cholesky factors, and two of random matrices, which fail with
TensorFlow 1.15.5 too for two or three of eight seeds.
"""

from __future__ import annotations

from environment import Library, main

PACKAGES = ("future", "keras==2.3.1")
LIBRARY = Library(
    "t3f", "t3f==1.1.0", tests=("t3f/*_test.py",), expected=259, packages=PACKAGES, is_source=False
)

if __name__ == "__main__":
    raise SystemExit(main(LIBRARY))
