"""Nodes that draw random numbers, as statements; and where the streams come from that they draw of.

A program takes a stream for each such node after its other inputs, and gives what is left of it after its
other outputs: its nodes would have drawn the same numbers. `program_kernel.py` sees to the streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.framework.types import dtypes
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims
from flowstone.lowering.programs.statement_parts import constant_input, copy, result_of
from flowstone.lowering.programs.translation import Translation
from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.numerics.elements import suits
from flowstone.native.programs.drawn_code import can_draw
from flowstone.ops.randomness.op_seeds import BLOCKS_OF_A_NUMBER, HOW

__all__ = ["CHOSEN", "DRAWS"]

_LEAST_PEAK = -1e300  # of logits of which none is finite


def _numbers(t: Translation, node: PlanNode, how: str, dtype: str, dims: tuple[int, ...], kept: int) -> int:
    """Numbers of this shape, for which the stream moves on by those that are kept for each of `kept`."""
    if not can_draw(how, dtype):
        raise Untranslatable(node, f"machine code draws no {how} {dtype}")
    blocks = kept * BLOCKS_OF_A_NUMBER
    bounds = [t.of(x) for x in node.inputs[1:3]] if how == "integers" else []
    return t.add("Draw", [t.stream(node), *bounds], (dtype, dims), how=how, blocks=blocks)


def _drawn(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    return [_numbers(t, node, HOW[node.type], dtype, dims, math.prod(dims))]


def _classes(t: Translation, node: PlanNode) -> list[int]:
    """As `ops/randomness/random_choice.py` does: in float64, those not finite never."""
    result, (rows, samples) = result_of(node)
    dtype, dims = kind_of(node, node.inputs[0]), static_dims(node, node.inputs[0].dims)
    constant_input(node, 1)
    if dtype not in FLOATS or not suits("Exp", ["float64"], {}):
        raise Untranslatable(node, f"machine code chooses by no {dtype}")
    wide, row = ("float64", dims), {"outer": rows, "size": dims[1], "inner": 1}
    never, least, zero = (t.builder.constant("float64", (), [x]) for x in (-math.inf, _LEAST_PEAK, 0.0))

    x = t.of(node.inputs[0])
    if dtype != "float64":
        x = t.add("Cast", [x], wide, DstT=dtypes.float64)
    below = t.add("Sub", [x, x], wide)  # 0 where it is finite, else NaN
    x = t.add("Select", [t.add("Equal", [below, zero], ("bool", dims)), x, never], wide)
    peak = t.add("Reduce", [x], ("float64", (rows, 1)), kind="Max", **row)
    peak = t.add("Maximum", [peak, least], ("float64", (rows, 1)))
    if t.builder.values[peak].size not in (1, math.prod(dims)):
        peak = copy(t, node, peak, np.broadcast_to(np.arange(rows)[:, None], dims))
    weights = t.add("Exp", [t.add("Sub", [x, peak], wide)], wide)
    kept = 2 * rows * (samples + -samples % 4)
    numbers = _numbers(t, node, "uniform", "float64", (rows, samples), kept)
    return [t.add("Choice", [weights, numbers], (result, (rows, samples)), rows=rows, classes=dims[1])]


def _kept(t: Translation, node: PlanNode) -> list[int]:
    """What a dropout keeps: x where the margin is not below zero (`arrays/margins.py`)."""
    dtype, dims = result_of(node)
    zero = t.builder.constant(dtype, (), [0])
    is_below = t.add("Less", [t.of(node.inputs[1]), zero], ("bool", dims))
    return [t.add("Select", [is_below, zero, t.of(node.inputs[0])], (dtype, dims))]


CHOSEN: dict[str, Callable[[Translation, PlanNode], list[int]]] = {"_KeptByMargin": _kept}
"""Nodes that choose by numbers that were drawn."""
DRAWS: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **dict.fromkeys(HOW, _drawn),
    "Multinomial": _classes,
}
"""Nodes that draw."""
