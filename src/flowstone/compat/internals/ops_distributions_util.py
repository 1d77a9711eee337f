"""`tensorflow.python.ops.distributions.util`: checks of parameters, and what is known before a step."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone as tf

__all__ = [
    "AppendDocstring",
    "assert_integer_form",
    "assert_symmetric",
    "dimension_size",
    "embed_check_categorical_event_shape",
    "embed_check_integer_casting_closed",
    "embed_check_nonnegative_integer_form",
    "get_logits_and_probs",
    "maybe_get_static_value",
    "pad",
    "parent_frame_arguments",
    "pick_vector",
    "prefer_static_broadcast_shape",
    "prefer_static_rank",
    "prefer_static_shape",
    "prefer_static_value",
    "process_quadrature_grid_and_probs",
    "same_dynamic_shape",
]


# ---- what is known before a step


def maybe_get_static_value(x: Any, dtype: Any = None) -> Any:
    """An array of `x`, if its value is known, as a NumPy `dtype`; None if it is not."""
    known = None if x is None else tf.get_static_value(tf.convert_to_tensor(x))
    return known if known is None or dtype is None else np.asarray(known, dtype)


def prefer_static_value(x: Any) -> Any:
    """The value of a tensor as an array if it is known, else the tensor."""
    known = tf.get_static_value(x)
    return x if known is None else known


def prefer_static_shape(x: Any) -> Any:
    """The shape of a tensor as an array if it is known, else as an int32 tensor."""
    return prefer_static_value(tf.shape(x))


def prefer_static_rank(x: Any) -> Any:
    """The rank of a tensor as a number if it is known, else as an int32 tensor."""
    return prefer_static_value(tf.rank(x))


def prefer_static_broadcast_shape(
    shape1: Any, shape2: Any, name: str = "prefer_static_broadcast_shape"
) -> Any:
    """The shape that two shapes broadcast to: a TensorShape if both are known, else an int32 tensor."""
    with tf.name_scope(name, values=[shape1, shape2]):
        known = [_known_shape(shape) for shape in (shape1, shape2)]
        if known[0] is not None and known[1] is not None:
            return tf.broadcast_static_shape(known[0], known[1])
        return tf.broadcast_dynamic_shape(*map(_shape_tensor, (shape1, shape2)))


def _known_shape(shape: Any) -> Any:
    if isinstance(shape, tf.TensorShape):
        return shape
    dims = tf.get_static_value(tf.convert_to_tensor(shape, tf.int32))
    return None if dims is None else tf.TensorShape(dims)


def _shape_tensor(shape: Any) -> Any:
    return tf.convert_to_tensor(shape.as_list() if isinstance(shape, tf.TensorShape) else shape, tf.int32)


def same_dynamic_shape(a: Any, b: Any) -> Any:
    """A boolean scalar: whether the shapes of two tensors are equal in the step."""
    a, b = tf.convert_to_tensor(a, name="a"), tf.convert_to_tensor(b, name="b")
    if a.shape.is_fully_defined() and b.shape.is_fully_defined():
        return tf.convert_to_tensor(a.shape == b.shape)
    return tf.cond(
        tf.equal(tf.rank(a), tf.rank(b)),
        lambda: tf.reduce_all(tf.equal(tf.shape(a), tf.shape(b))),
        lambda: tf.constant(False),
    )


def dimension_size(x: Any, axis: int) -> Any:
    """The size of an axis: a number if it is known, else an int32 tensor."""
    shape = x.shape
    size = None if shape.ndims is None else tf.dimension_value(shape[axis])
    return tf.shape(x)[axis] if size is None else size


# ---- checks


def assert_integer_form(
    x: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    int_dtype: Any = None,
    name: str = "assert_integer_form",
) -> Any:
    """An operation that fails unless all elements are whole numbers.

    `int_dtype`: the integers that represent them (int16, int32 or int64, as wide as `x`).
    """
    with tf.name_scope(name, values=[x, data]):
        x = tf.convert_to_tensor(x, name="x")
        if x.dtype.is_integer:
            return tf.no_op()
        if int_dtype is None:
            int_dtype = {tf.float16: tf.int16, tf.float32: tf.int32, tf.float64: tf.int64}.get(
                x.dtype.base_dtype
            )
            if int_dtype is None:
                raise TypeError(f"Unrecognized type {x.dtype.name}")
        message = f"{x} has non-integer components" if message is None else message
        whole = tf.cast(tf.cast(x, int_dtype), x.dtype)
        return tf.assert_equal(x, whole, data=data, summarize=summarize, message=message, name=name)


def assert_symmetric(matrix: Any) -> Any:
    """The matrix, once it has been checked to equal its transpose."""
    with tf.control_dependencies([tf.assert_equal(matrix, tf.matrix_transpose(matrix))]):
        return tf.identity(matrix)


def embed_check_nonnegative_integer_form(x: Any, name: str = "embed_check_nonnegative_integer_form") -> Any:
    """The tensor, once it has been checked to have whole numbers of at least 0."""
    with tf.name_scope(name, values=[x]):
        x = tf.convert_to_tensor(x, name="x")
        checks = [tf.assert_non_negative(x, message=f"'{x}' must be non-negative.")]
        if not x.dtype.is_integer:
            checks.append(assert_integer_form(x, message=f"'{x}' cannot contain fractional components."))
        with tf.control_dependencies(checks):
            return tf.identity(x)


def get_logits_and_probs(
    logits: Any = None,
    probs: Any = None,
    multidimensional: bool = False,
    validate_args: bool = False,
    name: str = "get_logits_and_probs",
    dtype: Any = None,
) -> tuple[Any, Any]:
    """Both the logits and the probabilities, of which one is given.

    `multidimensional`: the last axis is one distribution (soft-max); else each element is one (sigmoid). With
    `validate_args` a step fails for probabilities that are none. Raises ValueError unless one is given,
    TypeError for logits that are no floats.
    """
    with tf.name_scope(name, values=[probs, logits]):
        if (probs is None) == (logits is None):
            raise ValueError("Must pass probs or logits, but not both.")
        if probs is None:
            logits = tf.convert_to_tensor(logits, name="logits", dtype=dtype)
            if not logits.dtype.is_floating:
                raise TypeError("logits must having floating type.")
            if not multidimensional:
                return logits, tf.sigmoid(logits, name="probs")
            if validate_args:
                logits = embed_check_categorical_event_shape(logits)
            return logits, tf.nn.softmax(logits, name="probs")
        probs = tf.convert_to_tensor(probs, name="probs", dtype=dtype)
        if not probs.dtype.is_floating:
            raise TypeError("probs must having floating type.")
        if validate_args:
            probs = _checked(probs, multidimensional)
        with tf.name_scope("logits"):
            log = tf.log(probs)
            return (log if multidimensional else log - tf.log1p(-probs)), probs


def _checked(probs: Any, multidimensional: bool) -> Any:
    with tf.name_scope("validate_probs"):
        one = tf.constant(1.0, probs.dtype)
        checks = [tf.assert_non_negative(probs)]
        if multidimensional:
            probs = embed_check_categorical_event_shape(probs)
            checks.append(tf.assert_near(tf.reduce_sum(probs, -1), one, message="probs does not sum to 1."))
        else:
            checks.append(tf.assert_less_equal(probs, one, message="probs has components greater than 1."))
        with tf.control_dependencies(checks):
            return tf.identity(probs)


def _most_exact(dtype: Any) -> int:
    """The largest integer up to which a type has all of them."""
    if dtype.is_floating:
        return int(2 ** (np.finfo(dtype.as_numpy_dtype).nmant + 1))
    return int(dtype.max)


def embed_check_categorical_event_shape(
    categorical_param: Any, name: str = "embed_check_categorical_event_shape"
) -> Any:
    """The tensor, once its last axis has been checked: 2 events or more, and not more than its type counts.

    Raises ValueError for a static shape that is wrong; a step fails for others.
    """
    with tf.name_scope(name, values=[categorical_param]):
        x = tf.convert_to_tensor(categorical_param, name="categorical_param")
        most, dtype = _most_exact(x.dtype.base_dtype), x.dtype.base_dtype.name
        if x.shape.ndims == 0:
            raise ValueError("A categorical-distribution parameter must have at least 1 dimension.")
        events = None if x.shape.ndims is None else tf.dimension_value(x.shape[-1])
        if events is not None:
            if events < 2:
                raise ValueError("A categorical-distribution parameter must have at least 2 events.")
            if events > most:
                raise ValueError(
                    f"Number of classes exceeds `dtype` precision, i.e., {dtype} implies shape ({events}) "
                    f"cannot exceed {most}."
                )
            return x
        size = tf.shape(x, out_type=tf.int64)[-1]
        checks = [
            tf.assert_rank_at_least(
                x, 1, message="A categorical-distribution parameter must have at least 1 dimension."
            ),
            tf.assert_greater_equal(
                tf.shape(x)[-1],
                2,
                message="A categorical-distribution parameter must have at least 2 events.",
            ),
            tf.assert_less_equal(
                size,
                tf.constant(most, tf.int64),
                message=f"Number of classes exceeds `dtype` precision, i.e., {dtype} dtype cannot exceed "
                f"{most} shape.",
            ),
        ]
        with tf.control_dependencies(checks):
            return tf.identity(x)


def embed_check_integer_casting_closed(
    x: Any, target_dtype: Any, assert_nonnegative: bool = True, name: str = "embed_check_casting_closed"
) -> Any:
    """The tensor, once its values have been checked to be the same in `target_dtype`.

    Raises TypeError unless one of both types is of integers.
    """
    with tf.name_scope(name, values=[x]):
        x, target = tf.convert_to_tensor(x, name="x"), tf.as_dtype(target_dtype).base_dtype
        source = x.dtype.base_dtype
        if not (source.is_integer or target.is_integer):
            raise TypeError(
                f"At least one of {x}.dtype ({source.name}) and target_dtype ({target.name}) must be "
                "integer-type."
            )
        checks = (
            [tf.assert_non_negative(x, message="Elements must be non-negative.")]
            if assert_nonnegative
            else []
        )
        if not source.is_integer:
            text = f"Elements must be {target.name}-equivalent."
            checks.append(assert_integer_form(x, int_dtype=target, message=text))
        elif _most_exact(source) > _most_exact(target):
            most = _most_exact(target)
            checks.append(tf.assert_less_equal(x, most, message=f"Elements cannot exceed {most}."))
        with tf.control_dependencies(checks):
            return tf.identity(x)


def process_quadrature_grid_and_probs(
    quadrature_grid_and_probs: Any, dtype: Any, validate_args: bool, name: str | None = None
) -> tuple[Any, Any]:
    """Points and weights of a quadrature as tensors, the weights with sum 1.

    None stands for the Gauss-Hermite rule of eight points. Raises ValueError for numbers of both that differ.
    """
    with tf.name_scope(name, "process_quadrature_grid_and_probs", [quadrature_grid_and_probs]):
        if quadrature_grid_and_probs is None:
            points, weights = np.polynomial.hermite.hermgauss(deg=8)
            known = [each.astype(tf.as_dtype(dtype).as_numpy_dtype) for each in (points, weights)]
            return (
                tf.convert_to_tensor(known[0], name="grid"),
                tf.convert_to_tensor(known[1] / known[1].sum(), name="probs"),
            )
        grid, probs = tuple(quadrature_grid_and_probs)
        grid = tf.convert_to_tensor(grid, name="grid", dtype=dtype)
        probs = tf.convert_to_tensor(probs, name="unnormalized_probs", dtype=dtype)
        probs = probs / tf.norm(probs, ord=1, axis=-1, keepdims=True, name="probs")
        lengths = [dimension_size(each, axis=0) for each in (grid, probs)]
        text = "`quadrature_grid_and_probs` must be a `tuple` of same-length zero-th-dimension `Tensor`s"
        if all(isinstance(each, int) for each in lengths):
            if lengths[0] != lengths[1]:
                raise ValueError(f"{text} (saw lengths {lengths[0]}, {lengths[1]})")
        elif validate_args:
            with tf.control_dependencies([tf.assert_equal(lengths[0], lengths[1], message=text)]):
                grid, probs = tf.identity(grid), tf.identity(probs)
        return grid, probs


# ---- the rest


def pick_vector(cond: Any, true_vector: Any, false_vector: Any, name: str = "pick_vector") -> Any:
    """One of two vectors, by a boolean scalar: as it was given if that is known.

    Raises TypeError for a condition that is no boolean and for vectors of two types.
    """
    with tf.name_scope(name, values=(cond, true_vector, false_vector)):
        cond = tf.convert_to_tensor(cond, name="cond")
        if cond.dtype != tf.bool:
            raise TypeError(f"{cond}.dtype={cond.dtype} which is not {tf.bool}")
        known = tf.get_static_value(cond)
        if known is not None:
            return true_vector if known else false_vector
        true_vector = tf.convert_to_tensor(true_vector, name="true_vector")
        false_vector = tf.convert_to_tensor(false_vector, name="false_vector")
        if true_vector.dtype != false_vector.dtype:
            raise TypeError(
                f"{true_vector}.dtype={true_vector.dtype} does not match "
                f"{false_vector}.dtype={false_vector.dtype}"
            )
        length = tf.shape(true_vector)[0]
        start, size = tf.where(cond, 0, length), tf.where(cond, length, -1)
        return tf.slice(tf.concat([true_vector, false_vector], 0), [start], [size])


def pad(
    x: Any,
    axis: Any,
    front: bool = False,
    back: bool = False,
    value: Any = 0,
    count: Any = 1,
    name: str | None = None,
) -> Any:
    """A tensor with `count` times `value` before or after it along an axis. ValueError unless it is before or
    after.
    """
    with tf.name_scope(name, "pad", [x, value, count]):
        if not front and not back:
            raise ValueError("At least one of `front`, `back` must be `True`.")
        x = tf.convert_to_tensor(x, name="x")
        value = tf.convert_to_tensor(value, dtype=x.dtype, name="value")
        count = tf.convert_to_tensor(count, name="count")
        rank = prefer_static_rank(x)
        axis = tf.convert_to_tensor(axis)
        place = tf.where(axis < 0, rank + axis, axis)
        amounts = tf.stack([count if front else 0, count if back else 0])[tf.newaxis]
        chosen = tf.one_hot(tf.reshape(place, [1]), rank, axis=0, dtype=tf.int32)
        padded = tf.pad(x, chosen * amounts, constant_values=value)
        known, size = tf.get_static_value(axis), tf.get_static_value(count)
        if x.shape.ndims is not None and known is not None and size is not None:
            dims = x.shape.as_list()
            if dims[known] is not None:
                dims[known] += size * (bool(front) + bool(back))
            padded.set_shape(dims)
        return padded


def parent_frame_arguments() -> dict[str, Any]:
    """The arguments that the caller was called with, keywords among them, by name; no positional rest."""
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if caller is None:
        return {}
    names, _, keywords, values = inspect.getargvalues(caller)
    return {**(values.get(keywords, {}) if keywords else {}), **{name: values[name] for name in names}}


class AppendDocstring:
    """A decorator that adds a note, and a list of keywords with what is said of each, to a docstring.

    Raises ValueError for a note that begins or ends with white space.
    """

    def __init__(self, additional_note: str = "", kwargs_dict: dict[str, Any] | None = None) -> None:
        self._note = additional_note
        lines = []
        for key, value in sorted((kwargs_dict or {}).items()):
            text = value if isinstance(value, str) else " ".join(value)
            if text != text.strip():
                raise ValueError(f"Parameter docstring for {key} contains leading or trailing white space.")
            lines.append(f"*  {key}: {text}")
        if lines:
            self._note += "\n\n##### `kwargs`:\n\n" + "\n".join(lines)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with the longer docstring."""
        function.__doc__ = f"{function.__doc__ or ''}\n{self._note}" if function.__doc__ else self._note
        return function
