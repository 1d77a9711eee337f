"""TensorInfo: how a signature names a tensor."""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types.tensor_proto import messages

__all__ = ["build_tensor_info", "get_tensor_from_tensor_info"]


def build_tensor_info(tensor: Any) -> Any:
    """The TensorInfo of a Tensor or SparseTensor: name, dtype and static shape."""
    message = messages("meta_graph_pb2").TensorInfo(
        dtype=tensor.dtype.as_datatype_enum, tensor_shape=tensor.get_shape().as_proto()
    )
    if isinstance(tensor, SparseTensor):
        message.coo_sparse.values_tensor_name = tensor.values.name
        message.coo_sparse.indices_tensor_name = tensor.indices.name
        message.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        message.name = tensor.name
    return message


def get_tensor_from_tensor_info(
    tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None
) -> Any:
    """The Tensor or SparseTensor of `graph`, the default graph if None, that a TensorInfo names below
    `import_scope`. KeyError if it is not there, ValueError for a message that names none."""
    graph = graph or get_default_graph()

    def tensor(name: str) -> Any:
        return graph.get_tensor_by_name(f"{import_scope}/{name}" if import_scope else name)

    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        return tensor(tensor_info.name)
    if encoding == "coo_sparse":
        parts = tensor_info.coo_sparse
        return SparseTensor(
            tensor(parts.indices_tensor_name),
            tensor(parts.values_tensor_name),
            tensor(parts.dense_shape_tensor_name),
        )
    raise ValueError(f"Invalid TensorInfo.encoding: {encoding}")
