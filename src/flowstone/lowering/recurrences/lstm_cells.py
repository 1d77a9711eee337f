"""Finds LSTM cells and their gradients in a graph: their nodes, inputs and outputs.

    ConcatV2(x, h) → MatMul(·, weights) → BiasAdd → Split in four → c' = sigmoid(forget + bias) c +
    sigmoid(input) tanh(candidate) → h' = sigmoid(output) tanh(c')

however the four parts are ordered. Gradients are as `tf.gradients` makes them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.loop_variables import constant_of
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Surroundings, Term, Value

SUMS = frozenset({"Add", "AddV2", "AddN"})
ADD = "Add|AddV2"


class Cell(NamedTuple):
    """A cell: what it takes, its gates and which parts of the split they are, its state and output, and its
    `nodes`. `squashed` is tanh(c')."""

    x: PlanOutput
    h: PlanOutput
    c: PlanOutput
    weights: PlanOutput
    bias: PlanOutput
    rows: PlanOutput
    product: PlanOutput
    split: PlanNode
    input_part: int
    forget_part: int
    candidate_part: int
    output_part: int
    input_gate: PlanOutput
    forget_gate: PlanOutput
    candidate: PlanOutput
    output_gate: PlanOutput
    squashed: PlanOutput
    state: PlanOutput
    output: PlanOutput
    nodes: tuple[PlanNode, ...]
    forget_bias: float = 0.0

    @property
    def order(self) -> tuple[int, ...]:
        """Which parts are the input gate, the forget gate, the candidate and the output gate."""
        return self.input_part, self.forget_part, self.candidate_part, self.output_part

    @property
    def kind(self) -> tuple[PlanOutput, PlanOutput, float, tuple[int, ...]]:
        """What the cells of one layer share."""
        return self.weights, self.bias, self.forget_bias, self.order


# ---- the cell

COLUMNS = Number(where=lambda axis: axis in (1, -1), read=constant_of)
_ROWS = Op("ConcatV2", Value("x"), Value("h"), COLUMNS, name="rows")
_PRODUCT = Op("MatMul", _ROWS, Value("weights"), name="product", transpose_a=False, transpose_b=False)
BIASED = Op(f"BiasAdd|{ADD}", _PRODUCT, Value("bias"), data_format=lambda key: key in (None, "NHWC"))


_SAME_SUMS = Value("sums")


def _part(name: str, sums: Term = _SAME_SUMS) -> Op:
    """A part of what the sums are split into, which only one node takes."""
    axis = Number(where=lambda axis: axis == 1, read=constant_of)
    return Op("Split", axis, sums, num_split=4, node="split", part=name, alone=True)


_FORGET_SUM = Op(ADD, _part("forget_part"), Number("forget_bias", read=constant_of), alone=True)
_FORGET_GATE = Op("Sigmoid", Either(_FORGET_SUM, _part("forget_part")), name="forget_gate")
_INPUT_GATE = Op("Sigmoid", _part("input_part"), name="input_gate")
_CANDIDATE = Op("Tanh", _part("candidate_part"), name="candidate")
_OUTPUT_GATE = Op("Sigmoid", _part("output_part", BIASED.called("sums")), name="output_gate")
_WRITTEN = Op("Mul", _INPUT_GATE, _CANDIDATE, alone=True)
_STATE = Op(ADD, Op("Mul", _FORGET_GATE, Value("c")), _WRITTEN, name="state")


def _suits(cell: Cell) -> bool:
    """Whether it is a cell of float32 in known sizes."""
    x, h, weights, parts = cell.x.dims, cell.h.dims, cell.weights.dims, cell.state.dims
    if any(dims is None or None in dims or len(dims) != 2 or 0 in dims for dims in (x, h, weights, parts)):
        return False  # oneDNN makes nothing of nothing
    assert x is not None and h is not None and weights is not None
    same = cell.c.dims == h == parts and weights == (x[1] + h[1], 4 * h[1]) and x[0] == h[0]  # type: ignore[operator]
    if not same or cell.bias.dims != weights[1:] or len(set(cell.order)) != 4:
        return False
    return all(value.dtype.base_dtype is dtypes.float32 for value in (cell.x, cell.weights))


_CELL = Pattern(Op("Mul", Op("Tanh", _STATE, name="squashed"), _OUTPUT_GATE, name="output"), Cell, _suits)


def find_cells(nodes: Iterable[PlanNode], consumers: Consumers) -> list[Cell]:
    """The cells among these nodes, by where the parts of their gates are made."""
    found: dict[PlanNode, Cell] = {}
    nodes = list(nodes)
    for cell in _CELL.find(nodes, Surroundings(consumers)):
        found.setdefault(cell.split, cell)
    return [found[node] for node in nodes if node in found] if found else []


# ---- its gradient


class CellGradient(NamedTuple):
    """The gradient nodes of a cell: by its output (`dy`), what flows through its tanh(c') (`through`), by its
    state (`dc`); results by the weights and the bias, by x and h, and by c, where they are wanted. `first` is
    the gradient through the input gate."""

    dy: PlanOutput
    through: PlanOutput
    dc: PlanOutput
    first: PlanOutput
    weights: PlanOutput | None
    bias: PlanOutput | None
    dx: PlanOutput | None
    dh: PlanOutput | None
    before: PlanOutput | None
    nodes: list[PlanNode]


class _Slopes(NamedTuple):
    """The part of a cell's gradient from its output and state to the sums of its gates."""

    dy: PlanOutput
    through: PlanOutput
    dc: PlanOutput
    first: PlanOutput
    gates: PlanOutput
    nodes: tuple[PlanNode, ...]


class _Result(NamedTuple):
    """A node that makes a result of a gradient."""

    root: PlanNode
    nodes: tuple[PlanNode, ...]


class _Parts(NamedTuple):
    """The gradient for ``[x, h]``, split where `sizes` say."""

    sizes: Any
    root: PlanNode
    nodes: tuple[PlanNode, ...]


_BY_SQUASHED = "TanhGrad", Value("squashed"), Op("Mul", Value("dy"), Value("output_gate"))
_THROUGH, _ONLY_THROUGH = (Op(*_BY_SQUASHED, name="through", alone=alone) for alone in (False, True))
_DC = Either(Op("Add|AddN|AddV2", _ONLY_THROUGH, others="more"), _THROUGH, name="dc")
_BY_INPUT = Op("SigmoidGrad", Value("input_gate"), Op("Mul", _DC, Value("candidate")), name="first")
_BY_FORGET = Op("SigmoidGrad", Value("forget_gate"), Op("Mul", Value("dc"), Value("c")))
_BY_CANDIDATE = Op("TanhGrad", Value("candidate"), Op("Mul", Value("dc"), Value("input_gate")))
_BY_OUTPUT = Op("SigmoidGrad", Value("output_gate"), Op("Mul", Value("dy"), Value("squashed")))


@functools.cache
def _slopes(order: tuple[int, ...]) -> Pattern[_Slopes]:
    """The pattern for cells whose parts lie in this order."""
    terms = dict(zip(order, (_BY_INPUT, _BY_FORGET, _BY_CANDIDATE, _BY_OUTPUT)))
    return Pattern(Op("ConcatV2", *[terms[i] for i in range(4)], COLUMNS, name="gates"), _Slopes)


_ROWS_AXES = Number(where=lambda axes: axes.ravel().tolist() in ([0], [-2]))
_BY_BIAS = (
    Pattern(Op("BiasAddGrad", Value("gates")), _Result),
    Pattern(Op("Sum", Value("gates"), _ROWS_AXES, keep_dims=False), _Result),
)
_BY_WEIGHTS = Pattern(
    Op("MatMul", Value("rows"), Value("gates"), transpose_a=True, transpose_b=False), _Result
)
_BY_ROWS = Op("MatMul", Value("gates"), Value("weights"), transpose_a=False, transpose_b=True, alone=True)
_BY_X_AND_H = Pattern(Op("SplitV", _BY_ROWS, Number("sizes"), COLUMNS), _Parts)
_BY_STATE = Pattern(Op("Mul", Value("forget_gate"), Value("dc")), _Result)


def find_gradient(cell: Cell, consumers: Consumers) -> CellGradient | None:
    """The gradient of a cell, None if there is none in full."""
    around = Surroundings(consumers)
    names = ("input_gate", "forget_gate", "candidate", "output_gate", "squashed", "c")
    known = {name: getattr(cell, name) for name in names}
    slopes = next(_slopes(cell.order).find_above("candidate", around, **known), None)
    if slopes is None:
        return None
    gates, found = {"gates": slopes.gates}, list(slopes.nodes)

    def result(pattern: Pattern[_Result], above: str, **known: PlanOutput) -> PlanOutput | None:
        matches = list(pattern.find_above(above, around, **known))
        found.extend(node for match in matches for node in match.nodes)
        return matches[-1].root.outputs[0] if matches else None

    by_bias = [x for pattern in _BY_BIAS if (x := result(pattern, "gates", **gates)) is not None]
    weights = result(_BY_WEIGHTS, "gates", rows=cell.rows, **gates)
    before = result(_BY_STATE, "forget_gate", forget_gate=cell.forget_gate, dc=slopes.dc)
    dx = dh = None
    sizes = [x.dims[1] for x in (cell.x, cell.h)]  # type: ignore[index]
    for parts in _BY_X_AND_H.find_above("gates", around, weights=cell.weights, **gates):
        if parts.sizes.tolist() == sizes:
            dx, dh = parts.root.outputs
            found += parts.nodes
    bias = by_bias[-1] if by_bias else None
    return CellGradient(
        slopes.dy, slopes.through, slopes.dc, slopes.first, weights, bias, dx, dh, before, found
    )
