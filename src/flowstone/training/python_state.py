"""`tf.train.experimental.PythonState`: the base of objects of Python with a state of their own."""

from __future__ import annotations

__all__ = ["PythonState"]


class PythonState:
    """Classes of a program derive from it; a `Checkpoint` saves variables, and refuses such an object."""

    def serialize(self) -> str | bytes:
        """The state, as text or bytes; for subclasses."""
        raise NotImplementedError(f"{type(self).__name__}.serialize")

    def deserialize(self, string_value: str | bytes) -> None:
        """Takes a state; for subclasses."""
        raise NotImplementedError(f"{type(self).__name__}.deserialize")
