"""Importing this module makes `import tensorflow` mean flowstone, in the whole process.

    import flowstone.compat.tensorflow
    import tensorflow as tf  # flowstone

So a program, or a library that imports TensorFlow, runs over flowstone without the command line. The rest of
flowstone never imports this module: what it needs is in `tensorflow_name`. Python itself stays as it is; for
programs that want names which Python or NumPy have dropped, call `flowstone.compat.older_python.install()`.

Raises RuntimeError if TensorFlow itself is loaded already.
"""

from __future__ import annotations

from flowstone.compat.tensorflow_name import install

__all__ = ["install"]

install()
