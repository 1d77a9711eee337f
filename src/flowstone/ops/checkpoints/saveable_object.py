"""`SaveableObject`: what a checkpoint keeps of a thing, tensors with names, and how that restores it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes

__all__ = ["SaveSpec", "SaveableObject"]


class SaveSpec:
    """A tensor to be saved: `tensor`, the `name` that it has in checkpoints, and `slice_spec`, which part of
    the tensor of that name it is ("" for the whole). `device`: where it is, by default the tensor's own."""

    def __init__(
        self, tensor: Any, slice_spec: str, name: str, dtype: Any = None, device: Any = None
    ) -> None:
        self.device = getattr(tensor, "device", None) if device is None else device
        self._tensor, self.slice_spec, self.name = tensor, slice_spec, name
        self.dtype = dtypes.as_dtype(tensor.dtype if dtype is None else dtype).base_dtype

    @property
    def tensor(self) -> Any:
        """The tensor. One that is given as a function, with a `dtype`, is made when it is first needed."""
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """What is saved and restored as one: `op`, whose device is used; `specs`; and its `name`."""

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op, self.specs, self.name = op, specs, name

    @property
    def device(self) -> str:
        """The device of its tensors."""
        return getattr(self.op, "device", "") or ""

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        """The operation that restores it from the tensors; `restored_shapes`: the shapes that they get first,
        or None."""
        raise NotImplementedError("Calling an abstract method.")
