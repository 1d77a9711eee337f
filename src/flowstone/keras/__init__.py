"""`keras` 2.2 or 2.3 over flowstone, and `tf.keras`: the package once more, as TensorFlow 1.15 had it.

| file | gives |
| --- | --- |
| `installation` | whether the package is there |
| `published` | the package, loaded with `tensorflow` meaning flowstone, and once more for `tf.keras` |
| `extensions` | what `tf.keras` has differently from the package |
| `namespaces` | `tf.keras.layers` and the others: the package's modules and what they lack of `tf.keras` |
| `foundation` | what the package takes from `tensorflow.python.keras.backend`; it gathers other files |
| `mixed_precision` | layers that compute in another type than that of their variables |
| `tf_utils` | `tensorflow.python.keras.utils.tf_utils` |
| `older_python` | what the package expects of Python, NumPy and h5py of its time |

The package is loaded when a program first asks for one of its names. Where it is not installed, that raises
ModuleNotFoundError, which says what to install.
"""

from __future__ import annotations

from typing import Any

from flowstone.keras import namespaces, published

published.install()
namespaces.install()


def __getattr__(name: str) -> Any:
    return namespaces.find(name)


def __dir__() -> list[str]:
    return sorted({*namespaces.NAMES, *globals()})
