"""PrettyTensor 0.7.4's own tests over flowstone: `python tests/libraries/prettytensor_tests.py`.

With TensorFlow 1.0.1 168 are counted, two of which are the method `test_session` of its base class; the
package's own are 166. One of these does not pass here: it reshapes to a constant shape of another size, which
TensorFlow 1.15 refuses, too, while the graph is built.
"""

from __future__ import annotations

from environment import Library, main

LIBRARY = Library(
    name="prettytensor",
    requirement="prettytensor==0.7.4",
    tests=("prettytensor/*_test.py",),
    expected=165,
    packages=("six",),
    is_source=False,
)

if __name__ == "__main__":
    raise SystemExit(main(LIBRARY))
