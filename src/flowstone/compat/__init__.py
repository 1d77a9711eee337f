"""Other names for flowstone, so that programs written for TensorFlow 1 run as they are.

| room | gives |
| --- | --- |
| `tensorflow` | `import flowstone.compat.tensorflow` makes `import tensorflow` mean flowstone |
| `tensorflow_name` | how: the module name `tensorflow` and all below it |
| `module_paths` | where the names of TensorFlow's internal modules are found here, as a table |
| `behaviour` | `disable_v2_behavior` and the other switches between TensorFlow 1 and 2 |
| `internals` | what only TensorFlow's internal modules have, a file a module |
| `version_two` | what programs of 2019 find in `tf.compat.v2` |
| `eras` | what programs of 2015 and 2016 call things, and how |
| `older_python` | names that Python and NumPy have dropped, for programs that `flowstone run` runs |
| `program_names`, `verdicts` | which names a program uses, and whether they are here |
| `mnist` | the tutorials' reader of MNIST |
| `text` | bytes and text |

This package is also the public `tf.compat`: the names of `text`, `v1`, which is flowstone itself, and `v2`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from flowstone.compat.text import (
    as_bytes,
    as_str,
    as_str_any,
    as_text,
    bytes_or_text_types,
    complex_types,
    dimension_at_index,
    dimension_value,
    forward_compatibility_horizon,
    forward_compatible,
    integral_types,
    path_to_str,
    real_types,
)

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_at_index",
    "dimension_value",
    "forward_compatibility_horizon",
    "forward_compatible",
    "integral_types",
    "path_to_str",
    "real_types",
]


def __getattr__(name: str) -> ModuleType:
    if name == "v1":
        return sys.modules["flowstone"]
    if name == "v2":
        return import_module("flowstone.compat.version_two").namespace()  # type: ignore[no-any-return]
    raise AttributeError(f"flowstone does not have the name tensorflow.compat.{name}")
