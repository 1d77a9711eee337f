"""Variables, constants and placeholders of Keras, and variables' values outside the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.keras.sessions import get_session, track_variable
from flowstone.keras.settings import floatx

__all__ = [
    "batch_get_value",
    "batch_set_value",
    "constant",
    "get_value",
    "is_sparse",
    "placeholder",
    "set_value",
    "variable",
]


def is_sparse(tensor: Any) -> bool:
    """Whether it is a SparseTensor."""
    return isinstance(tensor, tf.SparseTensor)


def variable(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    constraint: Callable[[Any], Any] | None = None,
) -> Any:
    """A variable that begins with `value`; for a sparse matrix of SciPy a constant SparseTensor.

    `dtype`: by default the float type. `constraint`: the function that optimisers apply to it after a step.
    """
    dtype = dtype or floatx()
    made: Any
    if hasattr(value, "tocoo"):
        matrix = value.tocoo()
        indices = np.stack([matrix.row, matrix.col], axis=1).astype(np.int64)
        made = tf.SparseTensor(indices, tf.constant(matrix.data), matrix.shape)
        made._keras_shape = matrix.shape
    else:
        options: dict[str, Any] = {"constraint": constraint, "use_resource": True}
        made = tf.Variable(value, dtype=tf.as_dtype(dtype), name=name, **options)
        shape = made.shape
        if isinstance(value, np.ndarray):
            made._keras_shape = value.shape
        elif shape.is_fully_defined():
            made._keras_shape = tuple(shape.as_list())
        track_variable(made)
    made._uses_learning_phase = False
    return made


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """A constant, by default of the float type."""
    return tf.constant(value, dtype=dtype or floatx(), shape=shape, name=name or "Const")


def placeholder(
    shape: Any = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> Any:
    """A placeholder of this shape, or of `ndim` axes of any sizes; a SparseTensor if it is `sparse`.

    Raises ValueError for one that is `ragged`.
    """
    if ragged:
        raise ValueError("Graphs of TensorFlow 1 have no ragged tensors; a placeholder is dense or sparse.")
    dtype = dtype or floatx()
    if not shape and ndim:
        shape = (None,) * ndim
    if sparse:
        return tf.sparse_placeholder(dtype, shape, name)
    return tf.placeholder(dtype, shape, name)


def get_value(x: Any) -> Any:
    """The value of a variable, an array."""
    return x.eval(session=get_session((x,)))


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """The values of variables, read in one step."""
    if not tensors:
        return []
    values: list[Any] = get_session(tensors).run(list(tensors))
    return values


def set_value(x: Any, value: Any) -> None:
    """Gives a variable this value."""
    batch_set_value([(x, value)])


def batch_set_value(tuples: Sequence[tuple[Any, Any]]) -> None:
    """Gives each variable its value, all in one step: pairs of a variable and an array."""
    if not tuples:
        return
    given = dict(tuples)  # of a variable that comes twice, the last value
    values = [np.asarray(value, dtype=x.dtype.base_dtype.as_numpy_dtype) for x, value in given.items()]
    pairs = [_assignment(x, value.ndim) for x, value in zip(given, values)]
    _assigning(get_session(list(given)), list(given), pairs)(*values)


def _assigning(session: Any, variables: list[Any], pairs: list[tuple[Any, Any]]) -> Any:
    """The step of a session that gives these variables values; the first variable keeps the last one made."""
    known = getattr(variables[0], "_assign_step", None)
    if known is None or known[0] is not session or known[1] != variables:
        step = session.make_callable([step for _, step in pairs], [source for source, _ in pairs])
        known = variables[0]._assign_step = (session, variables, step)
    return known[2]


def _assignment(x: Any, ndim: int) -> tuple[Any, Any]:
    """The placeholder for a new value of `x`, and the operation that gives it to `x`; made once."""
    if not hasattr(x, "_assign_placeholder"):
        with x.graph.as_default(), tf.control_dependencies(None):
            x._assign_placeholder = tf.placeholder(x.dtype.base_dtype, [None] * ndim)
            x._assign_op = x.assign(x._assign_placeholder).op
    return x._assign_placeholder, x._assign_op
