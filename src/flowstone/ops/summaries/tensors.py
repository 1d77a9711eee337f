"""Summaries of any tensor, for plugins of TensorBoard; texts are such."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import array_proto, messages
from flowstone.framework.types.values import to_numpy
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.summaries.summaries import collect, new_summary, serialized, summary_scope, tag_of

__all__ = ["get_summary_description", "tensor_summary", "text"]

tensor_summary_op = op(
    "TensorSummary", "tensor: T -> summary: string",
    "description: string = '' ; labels: list(string) = [] ; display_name: string = ''", T=None,
)  # fmt: skip
tensor_summary_v2_op = op(
    "TensorSummaryV2",
    "tag: string, tensor: T, serialized_summary_metadata: string -> summary: string",
    T=None,
)
for _declared in (tensor_summary_op, tensor_summary_v2_op):
    _declared.infer(lambda node: ())
    _declared.not_differentiable()


@tensor_summary_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(0).base_dtype

    def summarize(tensor: Any) -> np.ndarray[Any, Any]:
        summary = new_summary()
        summary.value.add(node_name=node.name, tensor=array_proto(to_numpy(tensor, dtype), dtype))
        return serialized(summary)

    return summarize


@tensor_summary_v2_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(1).base_dtype

    def summarize(tag: Any, tensor: Any, metadata: Any) -> np.ndarray[Any, Any]:
        summary = new_summary()
        value = summary.value.add(tag=tag_of(tag), tensor=array_proto(to_numpy(tensor, dtype), dtype))
        try:
            value.metadata.ParseFromString(tag_bytes(metadata))
        except Exception:
            raise invalid("Could not parse the serialized_summary_metadata") from None
        return serialized(summary)

    return summarize


def tag_bytes(value: Any) -> bytes:
    """The element of a string scalar. InvalidArgumentError for others."""
    if value.size != 1:
        raise invalid(f"serialized_summary_metadata must be a scalar, not of {value.size} elements")
    return value.item()  # type: ignore[no-any-return]


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Any = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A summary of a tensor of any type and shape; see `scalar` for the other arguments.

    `summary_metadata`: a SummaryMetadata, which says what plugin shows it; `summary_description` and
    `display_name` are added to it.
    """
    metadata = messages("summary_pb2").SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if display_name is not None:
        metadata.display_name = display_name
    if summary_description is not None:
        metadata.summary_description = summary_description
    with summary_scope(name, family) as (tag, scope):
        summary: Tensor = tensor_summary_v2_op(tag, tensor, metadata.SerializeToString(), name=scope)
        collect(summary, collections)
    return summary


def text(name: str, tensor: Any, collections: Any = None) -> Tensor:
    """A summary of strings, which TensorBoard shows as Markdown, matrices as tables.

    ValueError unless `tensor` holds strings.
    """
    values = convert_to_tensor(tensor)
    if values.dtype.base_dtype is not dtypes.string:
        raise ValueError(f"Expected tensor {values.name} to have dtype string, got {values.dtype}")
    metadata = messages("summary_pb2").SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, values, summary_metadata=metadata, collections=collections)


def get_summary_description(node_def: Any) -> Any:
    """The SummaryDescription of a TensorSummary's NodeDef. ValueError for other ops."""
    from google.protobuf import json_format

    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    message = messages("summary_pb2").SummaryDescription()
    json_format.Parse(node_def.attr["description"].s.decode() or "{}", message)
    return message
