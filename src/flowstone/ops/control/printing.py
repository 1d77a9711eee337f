"""`tf.print`: an operation that prints tensors and Python values."""

from __future__ import annotations

import pprint
import sys
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.graphs.graph_functions import is_tensor
from flowstone.framework.process import logging
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.control.reporting import print_v2_op
from flowstone.ops.strings.formatting import string_format

__all__ = ["print"]

_LEVELS = {
    logging.INFO: "log(info)", logging.WARN: "log(warning)", logging.ERROR: "log(error)",
    logging.info: "log(info)", logging.warning: "log(warning)", logging.warn: "log(warning)",
    logging.error: "log(error)",
}  # fmt: skip
_PLACES = "abcdefghijklmnopqrstuvwxyz0123456789"


def print(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that prints `inputs` in a line when it runs.

    `inputs`: tensors, sparse tensors, Python values, and lists, tuples and dicts of them. By keyword:

    - `output_stream`: sys.stderr (the default), sys.stdout, ``tf.logging.info``, ``warning`` or ``error`` (or
      their levels), or a file, ``"file://path"``, to which the line is added.
    - `summarize` (3): of each dimension so many elements are shown at both ends; -1 shows all.
    - `sep` (" ") stands between the inputs, `end` ("\\n") behind them.
    - `name`: of the operation.

    Raises ValueError for other keywords and streams.
    """
    stream = _stream(kwargs.pop("output_stream", sys.stderr))
    name, summarize = kwargs.pop("name", None), kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    text = _text(inputs, sep, summarize, name)
    return print_v2_op.operation(
        text, output_stream=stream, end="\n" if end is None else end, name=name or "PrintV2"
    )


def _stream(stream: Any) -> str:
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    for file, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
        if stream is file:
            return name
    try:
        return _LEVELS[stream]
    except (KeyError, TypeError):
        raise ValueError(
            f"Unsupported output stream, logging level, or file: {stream}. Supported are sys.stdout, "
            "sys.stderr, tf.logging.info, tf.logging.warning, tf.logging.error and 'file://<filepath>'."
        ) from None


def _text(inputs: tuple[Any, ...], sep: str, summarize: int, name: str | None) -> Tensor:
    """The line as a scalar string: a scalar string alone is itself, all else fills a template."""
    if len(inputs) == 1 and is_tensor(inputs[0]) and not isinstance(inputs[0], SparseTensor):
        only = inputs[0]
        if only.dtype is dtypes.string and only.shape.ndims == 0:
            return only  # type: ignore[no-any-return]
    tensors: list[Any] = []
    shown = [_shown(each, tensors) for each in inputs]
    template = sep.join(shown)
    place = _unused(template)
    template = template.replace(_MARK, place)
    return string_format(template, tensors, place, summarize, name and f"{name}_format")


_MARK = "\ue000"  # stands for a tensor until a placeholder is chosen


class _Place:
    """Where a tensor stands in the text of a structure."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _shown(value: Any, tensors: list[Any]) -> str:
    """The text of a value; what is to be computed is added to `tensors` and stands as marks."""
    if isinstance(value, str) and not isinstance(value, bytes):
        return value
    if not is_tensor(value) and not isinstance(value, (list, tuple, dict)):
        return _plain(value)
    leaves = nest.map_structure(lambda leaf: _placed(leaf, tensors), value)
    return pprint.pformat(leaves)


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, (int, float, complex, np.generic)) else pprint.pformat(value)


def _placed(leaf: Any, tensors: list[Any]) -> Any:
    if isinstance(leaf, SparseTensor):
        tensors += [leaf.indices, leaf.values, leaf.dense_shape]
        return _Place(f"'SparseTensor(indices={_MARK}, values={_MARK}, shape={_MARK})'")
    if is_tensor(leaf):
        tensors.append(F.Identity(leaf) if leaf.dtype.is_ref else leaf)
        return _Place(_MARK)
    return leaf


def _unused(template: str) -> str:
    """A placeholder that the text does not have."""
    place, number = "{}", 0
    while place in template:
        place += _PLACES[number % len(_PLACES)]
        number += 1
    return place
