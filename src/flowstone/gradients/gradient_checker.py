"""`tf.test.compute_gradient`: compares gradients from `tf.gradients` with difference quotients.

Both sides are Jacobians of shape [elements of x, elements of y]; a complex element counts as two, its real
and its imaginary part. They run in the default session."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.scope import get_default_session
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.gradients.gradient_computation import gradients
from flowstone.ops.arrays.constants import constant

Array = np.ndarray[Any, Any]
_CHECKED = (dtypes.half, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:
    """(theoretical, numeric) Jacobians of `y` with respect to `x`; a list of such pairs if `x` is a list.

    `x_shape`, `y_shape`: their shapes (lists of shapes for a list `x`); `x_init_value`: where to
    differentiate (random if None); `delta`: the step of the difference quotient; `init_targets`: operations
    to run first; `extra_feed_dict`: feeds of every run. Raises ValueError without a default session, for
    types without gradients and for values of another shape."""
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session: with tf.Session(): ...")
    for target in init_targets if isinstance(init_targets, (list, tuple)) else [init_targets]:
        if target is not None:
            session.run(target)
    if isinstance(x, list):
        values = [None] * len(x) if x_init_value is None else x_init_value
        starts = [_start(one, shape, value) for one, shape, value in zip(x, x_shape, values)]
        return [
            _Check(session, x, i, y, y_shape, starts, extra_feed_dict).jacobians(delta) for i in range(len(x))
        ]
    return _Check(session, [x], 0, y, y_shape, [_start(x, x_shape, x_init_value)], extra_feed_dict).jacobians(
        delta
    )


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> float:
    """The largest difference between the two Jacobians of `compute_gradient`; the arguments are the same."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = found if isinstance(found, list) else [found]
    return float(max((np.abs(a - b).max() for a, b in pairs if a.size), default=0.0))


def _start(x: Any, shape: Any, value: Any) -> Array:
    dtype = x.dtype.base_dtype
    if dtype not in _CHECKED:
        raise ValueError(f"Don't know how to differentiate by {x}: its type is {dtype.name}")
    shape = tuple(shape)
    if value is None:
        value = np.random.random_sample(shape)
        if dtype.is_complex:
            value = value + 1j * np.random.random_sample(shape)
    value = np.asarray(value)
    if value.shape != shape:
        raise ValueError(f"x_init_value has shape {value.shape}, x has {shape}")
    converted: Array = value.astype(dtype.as_numpy_dtype)
    return converted


def _as_reals(array: Array) -> Array:
    """The elements as one vector of real numbers, which shares the memory of a contiguous array."""
    flat = array.reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


class _Check:
    """One pair of Jacobians: of `y` with respect to the i-th of `xs`, at `starts`."""

    def __init__(
        self, session: Any, xs: list[Any], i: int, y: Any, y_shape: Any, starts: list[Array], extra: Any
    ) -> None:
        if y.dtype.base_dtype not in _CHECKED:
            raise ValueError(f"Don't know how to differentiate {y}: its type is {y.dtype.base_dtype.name}")
        self.session, self.xs, self.i, self.y = session, xs, i, y
        self.x_data, self.starts = starts[i].copy(), starts
        self.flow = np.zeros(tuple(y_shape), y.dtype.base_dtype.as_numpy_dtype)
        self.extra = dict(extra or {})

    def _feed(self) -> dict[Any, Any]:
        feed = dict(self.extra)
        for i, (x, start) in enumerate(zip(self.xs, self.starts)):
            feed[x if isinstance(x, Tensor) else convert_to_tensor(x)] = self.x_data if i == self.i else start
        return feed

    def jacobians(self, delta: float) -> tuple[Array, Array]:
        """The Jacobian from `tf.gradients` and the one from difference quotients."""
        return self._theoretical(), self._numeric(delta)

    def _theoretical(self) -> Array:
        with self.y.graph.as_default():
            flow = constant(self.flow)
            (gradient,) = gradients(self.y, self.xs[self.i], F.Identity(flow))
        shape = _as_reals(self.x_data).size, _as_reals(self.flow).size
        jacobian = np.zeros(shape, _as_reals(self.x_data).dtype)
        if gradient is None:
            return jacobian
        fetch = [gradient.values, gradient.indices] if isinstance(gradient, IndexedSlices) else gradient
        data = self.flow.copy()
        for column in range(shape[1]):
            _as_reals(data)[column] = 1
            found = self.session.run(fetch, {**self._feed(), flow: data})
            jacobian[:, column] = _as_reals(np.ascontiguousarray(self._dense(found)))
            _as_reals(data)[column] = 0
        return jacobian

    def _dense(self, found: Any) -> Array:
        if not isinstance(found, list):
            return np.asarray(found)
        dense: Array = np.zeros_like(self.x_data)
        np.add.at(dense, found[1], found[0])
        return dense

    def _numeric(self, delta: float) -> Array:
        reals = _as_reals(self.x_data)
        jacobian = np.zeros((reals.size, _as_reals(self.flow).size), reals.dtype)
        for row in range(reals.size):
            before = reals[row]
            ends = []
            for step in (delta, -delta):
                reals[row] = before + step
                ends.append(np.array(self.session.run(self.y, self._feed())))
            reals[row] = before
            jacobian[row] = _as_reals(np.ascontiguousarray(ends[0] - ends[1])) / (2 * delta)
        return jacobian
