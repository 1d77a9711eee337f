"""`tf.contrib.compiler.jit`: the scope that asked for compiled nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["experimental_jit_scope"]


@contextlib.contextmanager
def experimental_jit_scope(
    compile_ops: Any = True, separate_compiled_gradients: bool = False
) -> Iterator[None]:
    """A context that leaves the nodes within as they are: every plan is compiled."""
    yield
