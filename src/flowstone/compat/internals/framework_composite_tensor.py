"""`tensorflow.python.framework.composite_tensor`: what is made of several tensors, as a class to ask for."""

from __future__ import annotations

from abc import ABC

from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor

__all__ = ["CompositeTensor"]


class CompositeTensor(ABC):  # noqa: B024 (it is asked, and libraries derive from it)
    """A value made of several tensors: a SparseTensor, IndexedSlices, or a library's own."""


CompositeTensor.register(SparseTensor)
CompositeTensor.register(IndexedSlices)
