"""tf_slim's own tests over flowstone: `python tests/libraries/tf_slim_tests.py [arguments of pytest]`.

1,372 of version 1.1.0 pass with TensorFlow 1.15.5. What fails here: values that are known before the step,
so that an error comes earlier; recomputed blocks, which need a gradient tape; names of operations within a
layer; NumPy no longer takes a list of slices; seeded draws, whose numbers differ.
"""

from __future__ import annotations

from environment import Library, main

LIBRARY = Library(
    "tf_slim",
    "tf_slim==1.1.0",
    tests=("tf_slim/**/*_test.py",),
    expected=1330,
    packages=("nose==1.3.7", "absl-py", "keras==2.3.1"),
    is_source=False,
)

if __name__ == "__main__":
    raise SystemExit(main(LIBRARY))
