"""Arrays of one axis for inputs and targets of one axis, which the package always gives a second one."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["extend"]


def _changed(published: Callable[..., Any]) -> Callable[..., Any]:
    def standardize_input_data(
        data: Any,
        names: Any,
        shapes: Any = None,
        check_batch_axis: bool = True,
        exception_prefix: str = "",
    ) -> Any:
        """The arrays of `data` in the order of `names`, of one axis for a shape (batch,); see the package."""
        is_flat = [shape is not None and len(shape) == 1 for shape in shapes or []]
        if not any(is_flat):
            return published(data, names, shapes, check_batch_axis, exception_prefix)
        others = [None if flat else shape for flat, shape in zip(is_flat, shapes)]
        found = published(data, names, others, check_batch_axis, exception_prefix)
        return [
            x[:, 0] if flat and getattr(x, "ndim", 0) == 2 and x.shape[1] == 1 else x
            for flat, x in zip(is_flat, found)
        ]

    return standardize_input_data


def extend(module: ModuleType) -> None:
    """Changes the function of `keras.engine.training_utils`."""
    names = vars(module)
    names["standardize_input_data"] = _changed(names["standardize_input_data"])
