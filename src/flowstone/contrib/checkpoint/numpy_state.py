"""`tf.contrib.checkpoint.NumpyState`: NumPy arrays that a checkpoint saves.

arrays = tf.contrib.checkpoint.NumpyState()
checkpoint = tf.train.Checkpoint(arrays=arrays)
arrays.losses = np.zeros([10])
path = checkpoint.save("/tmp/run/ckpt")
checkpoint.restore(path)        # arrays.losses has what was saved, at once
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from flowstone.training.checkpoints.python_state import PythonState

__all__ = ["NumpyState"]


class NumpyState:
    """An object whose attributes are arrays; one that is restored has those of the checkpoint.

    NotImplementedError for other values, and ValueError when arrays of objects are saved.
    """

    def __init__(self) -> None:
        self.__dict__["_arrays"] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, (np.ndarray, np.generic)):
            raise NotImplementedError(
                f"Assigned {value} to the {name} property of {self}, which is not a NumPy array. Currently "
                "mixing NumPy arrays and other trackable objects is not supported."
            )
        self._arrays.setdefault(name, _Array()).value = value

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__["_arrays"].get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return found.value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._arrays]

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        return list(self._arrays.items())

    def _take_state(self, name: str, state: bytes) -> None:
        self._arrays.setdefault(name, _Array()).deserialize(state)


class _Array(PythonState):
    """One array."""

    value: Any

    def serialize(self) -> bytes:
        """The array as a file of NumPy."""
        file = io.BytesIO()
        np.save(file, self.value, allow_pickle=False)
        return file.getvalue()

    def deserialize(self, string_value: str | bytes) -> None:
        """Takes the array of such a file."""
        assert isinstance(string_value, bytes)
        self.value = np.load(io.BytesIO(string_value), allow_pickle=False)
