"""How large a model's variables and operations are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["analyze_ops", "analyze_vars", "tensor_description"]

_LINE = "---------"


def tensor_description(var: Any) -> str:
    """A tensor's type and shape, as ``(float32 3x4)``, with ``?`` for an unknown size."""
    shape = var.get_shape()
    sizes = "x".join("?" if size is None else str(size) for size in (shape.as_list() if shape.ndims else []))
    return f"({var.dtype.name} {sizes})"


def _size(tensor: Any) -> int:
    """How many items a tensor has, 0 if that is unknown."""
    return tensor.get_shape().num_elements() or 0


def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """The number of items of all tensors of a graph; `print_info`: whether each operation is printed."""
    if print_info:
        print(_LINE, "Operations: name -> (type shapes) [size]", _LINE, sep="\n")
    total = 0
    for operation in graph.get_operations():
        size = sum(_size(output) for output in operation.outputs)
        total += size
        if print_info and operation.outputs:
            outputs = ", ".join(tensor_description(output) for output in operation.outputs)
            print(operation.name, "\t->", outputs, f"[{size}]")
    return total


def analyze_vars(variables: Sequence[Any], print_info: bool = False) -> tuple[int, int]:
    """How many items and how many bytes variables have; `print_info`: whether each is printed."""
    if print_info:
        print(_LINE, "Variables: name (type shape) [size]", _LINE, sep="\n")
    total_size = total_bytes = 0
    for variable in variables:
        size = _size(variable)
        size_bytes = size * variable.dtype.size
        total_size += size
        total_bytes += size_bytes
        if print_info:
            print(variable.name, tensor_description(variable), f"[{size}, bytes: {size_bytes}]")
    if print_info:
        print(f"Total size of variables: {total_size}")
        print(f"Total bytes of variables: {total_bytes}")
    return total_size, total_bytes
