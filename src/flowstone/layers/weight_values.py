"""`WeightValues`: the values of a layer's variables in the default session, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework.tensors.scope import get_default_session

__all__ = ["WeightValues"]


class WeightValues:
    """What a layer, which has a `name`, does with the values of its `weights`."""

    def get_weights(self: Any) -> list[np.ndarray[Any, Any]]:
        """The values of the variables, in the order of `weights`. ValueError without a default session."""
        return list(_session(self.name).run(list(self.weights))) if self.weights else []

    def set_weights(self: Any, weights: Sequence[Any]) -> None:
        """Writes the values of the variables, in the order of `weights`.

        Raises ValueError without a default session, and for numbers or shapes that differ.
        """
        variables, values = list(self.weights), [np.asarray(each) for each in weights]
        if len(variables) != len(values):
            raise ValueError(
                f'You called `set_weights(weights)` on layer "{self.name}" with a  weight list of length '
                f"{len(values)}, but the layer was expecting {len(variables)} weights. Provided weights: "
                f"{str(weights)[:50]}..."
            )
        for variable, value in zip(variables, values):
            if not variable.shape.is_compatible_with(value.shape):
                raise ValueError(
                    f"Layer weight shape {tuple(variable.shape.as_list())} not compatible with provided "
                    f"weight shape {value.shape}"
                )
        session = _session(self.name)
        for variable, value in zip(variables, values):
            variable.load(value.astype(variable.dtype.as_numpy_dtype), session)


def _session(name: str) -> Any:
    session = get_default_session()
    if session is None:
        raise ValueError(
            f"Layer '{name}' reads and writes its weights in the default session; there is none."
        )
    return session
