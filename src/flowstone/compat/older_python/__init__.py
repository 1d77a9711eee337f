"""The Python of the years of TensorFlow 1: names that Python 3.10 and NumPy 2 have dropped.

`flowstone run` installs them for the program that it runs; importing flowstone changes nothing of Python.

| file | gives back |
| --- | --- |
| `standard_library` | `collections.Mapping`, `inspect.getargspec`, `time.clock`, `imp`, `distutils` … |
| `changed_calls` | `open(name, "rU")`, `random.shuffle(x, random)`, `json.loads(s, encoding="utf-8")` … |
| `package_resources` | `pkg_resources` |
| `arrays` | `np.float`, `np.asscalar`, `np.product` … |
| `scientific` | `scipy.misc.imread`, `sklearn.cross_validation` … where SciPy and the others are installed |
| `stored_arrays` | `Dataset.value`, `attrs["name"].decode()` …, where h5py is installed |
| `tables` | `DataFrame.as_matrix`, `.ix`, `.append` …, where pandas is installed |
| `promotion` | the types of NumPy 1's results: float32 for `float32_array * np.sqrt(2.0)` |
| `single_elements` | `float(array)` of an array of one element and any rank |
| `number_slots` | how both change operators of NumPy's types |
| `generated_messages` | `…_pb2.py` files of an older protoc, or that import TensorFlow's messages |
| `late_modules` | how a module is made, or completed, when a program imports it |
| `python_2` | what is said of a program of Python 2 |
"""

from __future__ import annotations

from flowstone.compat.older_python import (
    arrays,
    changed_calls,
    generated_messages,
    late_modules,
    package_resources,
    promotion,
    scientific,
    single_elements,
    standard_library,
    stored_arrays,
    tables,
)

__all__ = ["install"]


def install() -> None:
    """Gives the names back; what is there is left as it is, and a second call changes nothing."""
    late_modules.install()
    standard_library.install()
    changed_calls.install()
    package_resources.install()
    arrays.install()
    promotion.install()
    single_elements.install()
    generated_messages.install()
    scientific.install()
    stored_arrays.install()
    tables.install()
