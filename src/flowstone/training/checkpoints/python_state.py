"""What a checkpoint has besides variables: states of Python objects, and tensors of other objects.

`PythonState` is `tf.train.experimental.PythonState`. It is asked when a checkpoint is written, and told at
once when one is restored.
"""

from __future__ import annotations

from typing import Any

__all__ = ["STATE", "PythonState", "StoredTensor"]

STATE = "py_state"  # the attribute's name in a checkpoint


class PythonState:
    """The base of objects whose state is text or bytes; a `Checkpoint` saves it."""

    def serialize(self) -> str | bytes:
        """The state, as text or bytes; for subclasses."""
        raise NotImplementedError(f"{type(self).__name__}.serialize")

    def deserialize(self, string_value: str | bytes) -> None:
        """Takes a state; for subclasses."""
        raise NotImplementedError(f"{type(self).__name__}.deserialize")


class StoredTensor:
    """The base of objects that a checkpoint has as one tensor, of the type `dtype`."""

    dtype: Any

    def saved_tensor(self) -> Any:
        """The tensor to save; for subclasses."""
        raise NotImplementedError(f"{type(self).__name__}.saved_tensor")

    def restored(self, tensor: Any) -> Any:
        """Takes the tensor that a checkpoint has; returns an operation to run, or None; for subclasses."""
        raise NotImplementedError(f"{type(self).__name__}.restored")
