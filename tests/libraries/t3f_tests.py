"""t3f's own tests over flowstone: `python tests/libraries/t3f_tests.py [arguments of pytest]`.

All 262 of version 1.1.0 pass with TensorFlow 1.15.5. Some compare random matrices as closely as float32
counts: one or two of them may fail here by a few digits.
"""

from __future__ import annotations

from environment import Library, main

PACKAGES = ("future", "keras==2.3.1")
LIBRARY = Library(
    "t3f", "t3f==1.1.0", tests=("t3f/*_test.py",), expected=260, packages=PACKAGES, is_source=False
)

if __name__ == "__main__":
    raise SystemExit(main(LIBRARY))
