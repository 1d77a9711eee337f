"""Summaries: what a step reports to TensorBoard, as nodes that compute serialised Summary messages.

Each is a string scalar and joins the collection SUMMARIES, of which `merge_all` makes one. A summary's tag is
its name scope, with the family, if any, before it:

>>> from flowstone.framework.graphs.graph import Graph
>>> with Graph().as_default() as graph, graph.name_scope("train"):
...     scalar("learning rate", 0.1).op.name
'train/learning_rate'
"""

from __future__ import annotations

import contextlib
import math
import re
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.process import logging
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import format_dims
from flowstone.framework.types.tensor_proto import messages
from flowstone.ops.variables.replicas import is_first_replica

__all__ = ["merge", "merge_all", "scalar"]

_NOT_IN_A_TAG = re.compile(r"[^-/\w.]")


# ---- operations

scalar_summary_op = op(
    "ScalarSummary", "tags: string, values: T -> summary: string", T=(*dtypes.REAL, dtypes.bfloat16)
)
scalar_summary_op.infer(lambda node: ())


def new_summary() -> Any:
    """An empty Summary."""
    return messages("summary_pb2").Summary()


def serialized(summary: Any) -> np.ndarray[Any, Any]:
    """A Summary as a string scalar of a step."""
    return np.array(summary.SerializeToString(), object)


def field(number: int, payload: bytes) -> bytes:
    """A field of a message that has a length: a text, a message or packed numbers."""
    size, length = len(payload), []
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([8 * number + 2, *length, size]) + payload


def serialized_value(tag: bytes, value: bytes) -> bytes:
    """The serialised Summary of one value, given as its field of Summary.Value."""
    return field(1, field(1, tag) + value if tag else value)


def tag_of(tag: np.ndarray[Any, Any]) -> str:
    """The text of a string scalar. InvalidArgumentError for others."""
    if tag.size != 1:
        raise errors.InvalidArgumentError(
            None, None, f"tags must be scalar, but has the shape {format_dims(tag.shape)}"
        )
    return tag.item().decode("utf-8", "replace")  # type: ignore[no-any-return]


def _scalar_bytes(tag: bytes, value: float) -> bytes:
    """The serialised Summary of one number."""
    try:
        number = struct.pack("<Bf", 0x15, value)
    except OverflowError:
        number = struct.pack("<Bf", 0x15, math.copysign(math.inf, value))
    return serialized_value(tag, number)


@scalar_summary_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    def summarize(tags: np.ndarray[Any, Any], values: torch.Tensor) -> np.ndarray[Any, Any]:
        if tags.shape != tuple(values.shape):
            tag = f" (tag '{tags.item().decode('utf-8', 'replace')}')" if tags.size == 1 else ""
            raise errors.InvalidArgumentError(
                None,
                None,
                f"tags and values are not the same shape: {format_dims(tags.shape)} != "
                f"{format_dims(tuple(values.shape))}{tag}",
            )
        pairs = zip(tags.reshape(-1).tolist(), values.reshape(-1).tolist())
        return np.array(b"".join([_scalar_bytes(tag, value) for tag, value in pairs]), object)

    return summarize


scalar_summary_op.not_differentiable()

merge_summary_op = op("MergeSummary", "inputs: N*string -> summary: string")
merge_summary_op.infer(lambda node: ())


@merge_summary_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    return merged_summaries


def merged_summaries(*inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The serialised Summary that has the values of all serialised ones in these arrays.

    InvalidArgumentError if one cannot be read or a tag occurs twice."""
    texts = [text for array in inputs for text in array.reshape(-1)]
    read, seen = messages("summary_pb2").Summary.FromString, set[str]()
    for text in texts:
        try:
            values = read(text).value
        except Exception:
            raise errors.InvalidArgumentError(
                None, None, "Could not parse one of the summary inputs"
            ) from None
        for value in values:
            if value.tag in seen:
                raise errors.InvalidArgumentError(
                    None, None, f"Duplicate tag {value.tag} found in summary inputs"
                )
            seen.add(value.tag)
    return np.array(b"".join(texts), object)  # the bytes of messages after each other are their sum


merge_summary_op.not_differentiable()


# ---- functions


def clean_tag(name: str) -> str:
    """`name` with an underscore for each character that node names do not allow; slashes before it go."""
    cleaned = _NOT_IN_A_TAG.sub("_", name).lstrip("/")
    if cleaned != name:
        logging.info("Summary name %s is illegal; using %s instead.", name, cleaned)
    return cleaned


@contextlib.contextmanager
def summary_scope(name: str, family: str | None = None, default_name: str | None = None) -> Iterator[Any]:
    """Within the context nodes are named for a summary; gives (its tag, its node's name)."""
    label = clean_tag(name)
    if family is not None:
        family = clean_tag(family)
        label = f"{family}/{label}"
    with get_default_graph().name_scope(label or default_name) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


def collect(summary: Tensor, collections: Iterable[Any] | None) -> None:
    """Adds a summary to `collections`; None is [SUMMARIES]. Of several replicas the first one's is added."""
    if not is_first_replica():
        return
    names = [GraphKeys.SUMMARIES] if collections is None else collections
    get_default_graph().add_to_collections(names, summary)


def scalar(name: str, tensor: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """A summary of one real number.

    `name`: of the node, and the tag together with the name scope; `family`: comes before the tag, so that
    TensorBoard shows summaries of one family together; `tensor`: a real scalar; `collections`: names of the
    collections that get the summary (None: [SUMMARIES]). Returns a string scalar, a serialised Summary.
    """
    with summary_scope(name, family) as (tag, scope):
        summary: Tensor = scalar_summary_op(tag, tensor, name=scope)
        collect(summary, collections)
    return summary


def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """The summary that has the values of all of `inputs`, a list of summaries.

    `collections`: names of the collections that get it (None: none). A tag that occurs twice is an
    InvalidArgumentError of the step.
    """
    with get_default_graph().name_scope(name or "Merge"):
        summary: Tensor = merge_summary_op(inputs, name=clean_tag(name) if name else None)
        collect(summary, collections or ())
    return summary


def merge_all(
    key: Any = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """`merge` of the default graph's collection `key` (with `scope`, of what begins with it); None if it is
    empty.
    """
    summaries = get_default_graph().get_collection(key, scope)
    return merge(summaries, name=name) if summaries else None
