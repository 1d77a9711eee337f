"""The Python of the years of TensorFlow 1: names that Python 3.10 and NumPy 2 have dropped.

`flowstone run` installs them for the program that it runs; importing flowstone changes nothing of Python.

| file | gives back |
| --- | --- |
| `standard_library` | `collections.Mapping`, `inspect.getargspec`, `time.clock`, `imp`, `distutils` … |
| `arrays` | `np.float`, `np.asscalar`, `np.product` … |
| `scientific` | `scipy.misc.imread`, `sklearn.cross_validation` … where SciPy and the others are installed |
| `late_modules` | how a module is made, or completed, when a program imports it |
| `python_2` | what is said of a program of Python 2 |
"""

from __future__ import annotations

from flowstone.compat.older_python import arrays, late_modules, scientific, standard_library

__all__ = ["install"]


def install() -> None:
    """Gives the names back; what is there is left as it is, and a second call changes nothing."""
    late_modules.install()
    standard_library.install()
    arrays.install()
    scientific.install()
