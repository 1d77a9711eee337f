"""`function(inputs, outputs, updates)`: a step of the graph as a Python function of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras.sessions import get_session

__all__ = ["Function", "function"]

_OPTIONS = frozenset({"feed_dict", "fetches", "options", "run_metadata"})
_ARRAYS = frozenset({np.ndarray, bool, float, int})


class Function:
    """A step of the graph: called with a value for each input, it returns a value for each output.

    Args:
        inputs: placeholders or other tensors.
        outputs: tensors, in any nested form; the values come in the same form.
        updates: pairs of a variable and its new value, or operations. They run after the outputs.
        name: of the function; the graph does not have it.
        session_kwargs: what else the step does. `fetches`: further operations or tensors, whose values go to
            the functions in `fetch_callbacks`. `feed_dict`: values of further tensors. `options`,
            `run_metadata`: as in `Session.run`.

    A value that is a tensor is computed first. None is not fed. Raises TypeError for inputs and updates that
    are not lists, ValueError for an unknown keyword.
    """

    def __init__(
        self, inputs: Any, outputs: Any, updates: Any = None, name: str | None = None, **session_kwargs: Any
    ) -> None:
        updates = updates or []
        if not isinstance(updates, (list, tuple)):
            raise TypeError("`updates` in a Keras backend function should be a list or tuple.")
        unknown = sorted(set(session_kwargs) - _OPTIONS)
        if unknown:
            raise ValueError(f"Invalid argument {unknown[0]!r} passed to a Keras backend function")
        self.inputs: list[Any] = nest.flatten(inputs)
        self.outputs: list[Any] = [
            tf.convert_to_tensor(x) if _is_plain(x) else x for x in nest.flatten(outputs)
        ]
        self.name = name
        self.feed_dict: dict[Any, Any] = session_kwargs.get("feed_dict") or {}
        self.fetches: list[Any] = [_fetched(item) for item in session_kwargs.get("fetches") or []]
        self.fetch_callbacks: dict[Any, Callable[[Any], None]] = {}
        self.run_options = session_kwargs.get("options")
        self.run_metadata = session_kwargs.get("run_metadata")
        self._form = outputs
        self._is_list = type(outputs) is list and not any(nest.is_nested(x) for x in outputs)
        self.updates_op = _grouped_updates(updates, self.outputs)
        self._is_dense = not any(isinstance(tensor, tf.SparseTensor) for tensor in self.inputs)
        self._step: tuple[Any, Callable[..., Any]] | None = None  # of a plain function: the session, the step

    def __call__(self, inputs: Any) -> Any:
        session = get_session(self.inputs)
        are_arrays = type(inputs) is list and _ARRAYS.issuperset(map(type, inputs))
        values = inputs if are_arrays else nest.flatten(inputs)
        if not are_arrays and any(isinstance(value, (tf.Tensor, tf.Variable)) for value in values):
            values = _computed(values, session)
        count = len(self.outputs)
        if (
            self._is_plain()
            and len(values) == len(self.inputs)
            and (are_arrays or not any(value is None for value in values))
        ):
            if self._step is None or self._step[0] is not session:
                fetches = [*self.outputs, self.updates_op]
                self._step = (session, session.make_callable(fetches, self.inputs))
            results = self._step[1](*values)
        else:
            results = self._run(session, values)
        for item, result in zip(self.fetches, results[count + 1 :]):
            if item in self.fetch_callbacks:
                self.fetch_callbacks[item](result)
        values_of_outputs = results[:count]
        return values_of_outputs if self._is_list else nest.pack_sequence_as(self._form, values_of_outputs)

    def _is_plain(self) -> bool:
        """Whether it only feeds arrays and fetches outputs; callbacks add fetches and options later."""
        return self._is_dense and not (
            self.feed_dict or self.fetches or self.run_options or self.run_metadata
        )

    def _run(self, session: Any, values: Sequence[Any]) -> list[Any]:
        """The outputs and the further fetches of a step with these values, those that are not None."""
        feeds = dict(self.feed_dict)
        for tensor, value in zip(self.inputs, values):
            if value is not None:
                feeds[tensor] = _feed(tensor, value)
        fetches = [*self.outputs, self.updates_op, *self.fetches]
        results: list[Any] = session.run(
            fetches, feeds, options=self.run_options, run_metadata=self.run_metadata
        )
        return results


def function(
    inputs: Any, outputs: Any, updates: Any = None, name: str | None = None, **kwargs: Any
) -> Function:
    """The `Function` of these inputs, outputs and updates."""
    return Function(inputs, outputs, updates, name, **kwargs)


def _is_plain(value: Any) -> bool:
    return not isinstance(value, (tf.Tensor, tf.SparseTensor, tf.Operation))


def _fetched(item: Any) -> Any:
    return tf.identity(item) if isinstance(item, tf.Tensor) else item


def _grouped_updates(updates: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """An operation that makes all updates once the outputs are computed."""
    first = [output for output in outputs if not isinstance(output, tf.SparseTensor)]
    with tf.control_dependencies(first):
        made = []
        for update in updates:
            if isinstance(update, tuple):
                variable, value = update
                made.append(tf.assign(variable, value))
            else:
                made.append(update)
        return tf.group(*made)


def _computed(values: Sequence[Any], session: Any) -> list[Any]:
    """The values, those that are tensors as arrays."""
    symbolic = [value for value in values if isinstance(value, (tf.Tensor, tf.Variable))]
    arrays = iter(session.run(symbolic))
    return [next(arrays) if isinstance(value, (tf.Tensor, tf.Variable)) else value for value in values]


def _feed(tensor: Any, value: Any) -> Any:
    """The value as a session takes it: a matrix of SciPy becomes a sparse value."""
    if isinstance(tensor, tf.SparseTensor) and hasattr(value, "tocoo"):
        matrix = value.tocoo()
        indices = [[row, column] for row, column in zip(matrix.row, matrix.col)]
        return tf.SparseTensorValue(indices, matrix.data, matrix.shape)
    return value
