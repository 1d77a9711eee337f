"""`do_quantize_training_on_graphdef`: a graph that trains as if its products were computed with few bits.

Each tensor that a MatMul or Conv2D multiplies is rounded to the values that an integer of `num_bits` bits can
stand for. After Relu6, Sigmoid and Tanh their range is known. Elsewhere it is that of the tensor, as a moving
average over steps: in variables that begin with the first step's values and need no initialiser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import make_tensor_proto, messages

_MULTIPLY = ("MatMul", "Conv2D")
_GRADIENTS = "gradients"  # products of the backward pass have names that begin so
_WEIGHTS = ("Const", "ReadVariableOp", "Variable", "VariableV2", "VarHandleOp")
_MOVE = ("Identity", "Reshape", "MaxPool", "AvgPool", "ConcatV2")  # their first input decides
_DECAY = 0.999  # of the moving averages
_MOST_UNKNOWN = 2


class _Range(NamedTuple):
    """What is known of values: whether there are negative ones, and the bounds."""

    signed: bool
    bounds: tuple[float, float] | None = None


_RANGES = {
    "Relu": _Range(False),
    "Relu6": _Range(False, (0.0, 6.0)),
    "Sigmoid": _Range(False, (0.0, 1.0)),
    "Tanh": _Range(True, (-1.0, 1.0)),
}


def do_quantize_training_on_graphdef(input_graph: Any, num_bits: int) -> Any:
    """Rewrites a graph to train with its products quantised.

    The graph should have no gradients yet: those that are made of the result flow through the rounding
    unchanged, and see the rounded values. Products whose names begin with ``gradients`` stay as they are.

    Args:
        input_graph: a GraphDef; it is not changed.
        num_bits: how many bits an operand of a product has, 1 to 63.

    Returns:
        a GraphDef with the same nodes and more: MatMul and Conv2D read ``NAME/QuantizeAndDequantizeV2`` in
        place of NAME.

    Raises:
        OutOfRangeError: if num_bits is out of range.
        InvalidArgumentError: if operands are not float32.
        UnimplementedError: if more than two operands are neither weights nor results of Relu, Relu6, Sigmoid
            or Tanh, directly or moved by Identity, Reshape, MaxPool, AvgPool or ConcatV2. Two are taken for
            the inputs of the model.
    """
    if not 1 <= num_bits <= 63:
        raise errors.OutOfRangeError(None, None, f"num_bits should be in range [1, 63] but is: {num_bits}")
    graph = messages("graph_pb2").GraphDef()
    graph.CopyFrom(input_graph)
    _Rewriting(graph, num_bits).run()
    return graph


class _Rewriting:
    def __init__(self, graph: Any, num_bits: int) -> None:
        self.graph, self.num_bits = graph, num_bits
        self.nodes = {node.name: node for node in graph.node}
        self.unknown = 0

    def run(self) -> None:
        for node in list(self.graph.node):
            if node.op in _MULTIPLY and not node.name.startswith(_GRADIENTS):
                name = dtypes.as_dtype(node.attr["T"].type).name
                if name != "float32":
                    raise errors.InvalidArgumentError(
                        None,
                        None,
                        f"{node.name} multiplies {name}, but float32 is what is quantised.",
                    )
                for index in range(2):
                    node.input[index] = self._quantized(node.input[index])

    def _quantized(self, tensor: str) -> str:
        """The node that rounds `tensor`, made if there is none yet; returns its name."""
        known = self._range(tensor)
        name, _, slot = tensor.partition(":")
        prefix = f"{name}/{slot}" if slot.strip("0") else name
        result = f"{prefix}/QuantizeAndDequantizeV2"
        if result not in self.nodes:
            lowest, highest = self._bounds(prefix, tensor, known)
            self._add(
                result, "QuantizeAndDequantizeV2", [tensor, lowest, highest], T=dtypes.float32,
                signed_input=known.signed, num_bits=self.num_bits, range_given=True,
                round_mode="HALF_TO_EVEN", narrow_range=False,
            )  # fmt: skip
        return result

    def _range(self, tensor: str) -> _Range:
        node = self.nodes[tensor.partition(":")[0]]
        while node.op in _MOVE:
            node = self.nodes[node.input[0].partition(":")[0]]
        if node.op in _RANGES:
            return _RANGES[node.op]
        if node.op not in _WEIGHTS:
            self.unknown += 1
            if self.unknown > _MOST_UNKNOWN:
                raise errors.UnimplementedError(
                    None,
                    None,
                    f"{node.name} ({node.op}) would be a third input of the model. All else that is "
                    "multiplied must be weights or have a known range.",
                )
        return _Range(True)

    def _bounds(self, prefix: str, tensor: str, known: _Range) -> tuple[str, str]:
        if known.bounds is not None:
            return (
                self._constant(f"{prefix}/InputMin", known.bounds[0]),
                self._constant(f"{prefix}/InputMax", known.bounds[1]),
            )
        decay = self._constant(f"{prefix}/Decay", _DECAY)
        axes = f"{prefix}/ReductionAxes"
        start = self._constant(f"{axes}/RangeStart", 0, dtypes.int32)
        delta = self._constant(f"{axes}/RangeDelta", 1, dtypes.int32)
        rank = self._add(f"{axes}/InputRank", "Rank", [tensor], T=dtypes.float32)
        all_axes = self._add(f"{axes}/ReductionAxes", "Range", [start, rank, delta], Tidx=dtypes.int32)
        reduced = {"T": dtypes.float32, "Tidx": dtypes.int32, "keep_dims": False}
        lowest = self._add(f"{prefix}/Min", "Min", [tensor, all_axes], **reduced)
        highest = self._add(f"{prefix}/Max", "Max", [tensor, all_axes], **reduced)
        return self._averaged(lowest, decay), self._averaged(highest, decay)

    def _averaged(self, value: str, decay: str) -> str:
        """A variable that follows `value` from step to step; its name after it is assigned."""
        of_type = {"T": dtypes.float32}
        variable = self._add(
            f"{value}/Variable",
            "VariableV2",
            [],
            dtype=dtypes.float32,
            shape=(),
            container="",
            shared_name="",
        )
        is_set = self._add(
            f"{value}/IsInitialized", "IsVariableInitialized", [variable], dtype=dtypes.float32
        )
        switch = self._add(f"{value}/Switch", "Switch", [value, is_set], **of_type)
        average = f"{value}/EMA"
        one = self._constant(f"{average}/OneConst", 1.0)
        part = self._add(f"{average}/DecayComplement", "Sub", [one, decay], **of_type)
        difference = self._add(f"{average}/ValueDiff", "Sub", [variable, f"{switch}:1"], **of_type)
        change = self._add(f"{average}/UpdateValue", "Mul", [difference, part], **of_type)
        follows = self._add(f"{average}/EMAValue", "Sub", [variable, change], **of_type)
        merged = self._add(f"{value}/Merge", "Merge", [switch, follows], N=2, **of_type)
        return self._add(
            f"{value}/AssignValue",
            "Assign",
            [variable, merged],
            validate_shape=True,
            use_locking=True,
            **of_type,
        )

    # ---- nodes

    def _constant(self, name: str, value: float, dtype: Any = dtypes.float32) -> str:
        tensor = make_tensor_proto(np.asarray(value, dtype.as_numpy_dtype), shape=())
        return self._add(name, "Const", [], dtype=dtype, value=tensor)

    def _add(self, name: str, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        node = self.nodes[name] = self.graph.node.add(name=name, op=op, input=inputs)
        _write_attributes(node, attributes)
        return name


def _write_attributes(node: Any, attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        attr = node.attr[name]
        if isinstance(value, dtypes.DType):
            attr.type = value.as_datatype_enum
        elif isinstance(value, bool):
            attr.b = value
        elif isinstance(value, int):
            attr.i = value
        elif isinstance(value, str):
            attr.s = value.encode()
        elif isinstance(value, tuple):
            attr.shape.SetInParent()
        else:
            attr.tensor.CopyFrom(value)
