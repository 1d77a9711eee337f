"""Arguments of layers in their many spellings, made one: sizes, padding, layouts, initialisers, conditions.

>>> normalize_tuple(3, 2, "kernel_size"), normalize_padding("SAME"), convert_data_format("channels_first", 4)
((3, 3), 'same', 'NCHW')
>>> conv_output_length(8, 3, "valid", 2), deconv_output_length(3, 3, "valid", 2)
(3, 7)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.graphs.graph_functions import get_static_value
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.control.conditionals import cond
from flowstone.ops.variables import initializers

__all__ = [
    "ONES",
    "ZEROS",
    "conv_input_length",
    "conv_output_length",
    "convert_data_format",
    "deconv_output_length",
    "initializer_named",
    "normalize_data_format",
    "normalize_padding",
    "normalize_tuple",
    "smart_cond",
    "smart_constant_value",
]

# ---- sizes


def normalize_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    """`n` integers, from one of them or a sequence; `name` is the argument's. ValueError for anything
    else."""
    if isinstance(value, (int, np.integer)):
        return (int(value),) * n
    problem = f"The `{name}` argument must be a tuple of {n} integers. Received: {value}"
    try:
        values = tuple(value)
    except TypeError:
        raise ValueError(problem) from None
    if len(values) != n:
        raise ValueError(problem)
    for single in values:
        try:
            int(single)
        except (TypeError, ValueError):
            raise ValueError(f"{problem} including element {single} of type {type(single)}") from None
    return tuple(int(single) for single in values)


def normalize_padding(value: str) -> str:
    """ "valid", "same" or "causal", from any case. ValueError for another."""
    padding = value.lower()
    if padding not in {"valid", "same", "causal"}:
        raise ValueError(
            'The `padding` argument must be one of "valid", "same" (or "causal", only for `Conv1D`). '
            f"Received: {padding}"
        )
    return padding


def normalize_data_format(value: str | None) -> str:
    """ "channels_last" or "channels_first", from any case; None is the first. ValueError for another."""
    data_format = "channels_last" if value is None else value.lower()
    if data_format not in {"channels_first", "channels_last"}:
        raise ValueError(
            f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {value}'
        )
    return data_format


def convert_data_format(data_format: str, ndim: int) -> str:
    """The layout that ops name so, for inputs of rank 3, 4 or 5: ``"NWC"``, ``"NCHW"`` … ValueError for
    others."""
    if ndim not in (3, 4, 5):
        raise ValueError(f"Input rank not supported: {ndim}")
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"Invalid data_format: {data_format}")
    places = "DHW"[5 - ndim :]
    return f"N{places}C" if data_format == "channels_last" else f"NC{places}"


def conv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """The length of a convolution's output along one dimension; None where the input's is unknown."""
    if input_length is None:
        return None
    reach = (filter_size - 1) * dilation
    lost = {"same": 0, "causal": 0, "valid": reach, "full": -reach}[padding]
    return (input_length - lost + stride - 1) // stride


def conv_input_length(output_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """The length of the input of a convolution with this output's; None where that is unknown."""
    if output_length is None:
        return None
    margin = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * margin + filter_size


def deconv_output_length(input_length: Any, filter_size: int, padding: str, stride: int) -> Any:
    """The length of a transposed convolution's output: a number, or a tensor where `input_length` is one.

    None where the input's length is None.
    """
    if input_length is None:
        return None
    length = input_length * stride
    if padding == "valid":
        length += max(filter_size - stride, 0)
    elif padding == "full":
        length -= stride + filter_size - 2
    return length


# ---- initialisers

ZEROS, ONES = initializers.Zeros(), initializers.Ones()
_INITIALIZERS: dict[str, Callable[[], Any]] = {
    "constant": initializers.Constant,
    "glorot_normal": initializers.GlorotNormal,
    "glorot_uniform": initializers.GlorotUniform,
    "he_normal": initializers.he_normal,
    "he_uniform": initializers.he_uniform,
    "identity": initializers.Identity,
    "lecun_normal": initializers.lecun_normal,
    "lecun_uniform": initializers.lecun_uniform,
    "ones": initializers.Ones,
    "orthogonal": initializers.Orthogonal,
    "random_normal": lambda: initializers.RandomNormal(stddev=0.05),
    "random_uniform": lambda: initializers.RandomUniform(-0.05, 0.05),
    "truncated_normal": lambda: initializers.TruncatedNormal(stddev=0.05),
    "variance_scaling": initializers.VarianceScaling,
    "zeros": initializers.Zeros,
}


def initializer_named(initializer: Any) -> Any:
    """The initialiser for a name or a configuration; anything else, None among it, stays as it is.

    ValueError for an unknown name.
    """
    if isinstance(initializer, dict):
        made = getattr(initializers, str(initializer["class_name"]), None)
        if made is None:
            raise ValueError(f"Unknown initializer: '{initializer['class_name']}'.")
        return made(**initializer["config"])
    if not isinstance(initializer, str):
        return initializer
    if initializer not in _INITIALIZERS:
        known = ", ".join(_INITIALIZERS)
        raise ValueError(f"Unknown initializer: '{initializer}'. Known are {known}.")
    return _INITIALIZERS[initializer]()


# ---- conditions


def smart_constant_value(pred: Any) -> bool | None:
    """The value of a predicate that is known now (a bool, 0, 1 or a constant tensor), else None.

    Raises TypeError if `pred` is neither of these nor a tensor or variable.
    """
    if isinstance(pred, (bool, np.bool_)) or (isinstance(pred, int) and pred in (0, 1)):
        return bool(pred)
    if isinstance(pred, Tensor):
        value = get_static_value(pred)
        return None if value is None else bool(value)
    if hasattr(pred, "initializer"):
        return None
    raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {type(pred)}")


def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """`cond` that builds one branch only where the predicate is known now.

    Raises TypeError if a branch is not callable.
    """
    if not callable(true_fn):
        raise TypeError("`true_fn` must be callable.")
    if not callable(false_fn):
        raise TypeError("`false_fn` must be callable.")
    value = smart_constant_value(pred)
    if value is None:
        return cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return true_fn() if value else false_fn()


constant_value = smart_constant_value
