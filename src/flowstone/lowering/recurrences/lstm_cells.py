"""LSTM cells in a graph, and the gradients of one: which nodes they are, and what comes in and goes out.

    ConcatV2(x, h) → MatMul(·, weights) → BiasAdd → Split in four → c' = sigmoid(forget + bias) c +
    sigmoid(input) tanh(candidate) → h' = sigmoid(output) tanh(c')

however the four parts are ordered. Gradients are as `tf.gradients` makes them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowstone.framework import dtypes
from flowstone.framework.subgraph import PlanNode, PlanOutput
from flowstone.rewriting.analyses.loop_variables import Takers, constant_of

SUMS = frozenset({"Add", "AddV2", "AddN"})
_ADDS = frozenset({"Add", "AddV2"})


class Cell(NamedTuple):
    """A cell: what it takes, its gates (`input_gate`, `forget_gate`, `candidate`, `output_gate`, of which
    `order` says which parts of the split they are), its state and output, and its `nodes`."""

    x: PlanOutput
    h: PlanOutput
    c: PlanOutput
    weights: PlanOutput
    bias: PlanOutput
    forget_bias: float
    order: tuple[int, ...]
    rows: PlanOutput
    input_gate: PlanOutput
    forget_gate: PlanOutput
    candidate: PlanOutput
    output_gate: PlanOutput
    squashed: PlanOutput  # tanh(c')
    state: PlanOutput
    output: PlanOutput
    nodes: list[PlanNode]

    @property
    def kind(self) -> tuple[PlanOutput, PlanOutput, float, tuple[int, ...]]:
        """What the cells of one layer share."""
        return self.weights, self.bias, self.forget_bias, self.order


class CellGradient(NamedTuple):
    """The gradient nodes of a cell: by its output (`dy`), what flows through its tanh(c') (`through`), by its
    state (`dc`); results by the weights and the bias, by x and h, and by c, where they are wanted."""

    dy: PlanOutput
    through: PlanOutput
    dc: PlanOutput
    weights: PlanOutput | None
    bias: PlanOutput | None
    dx: PlanOutput | None
    dh: PlanOutput | None
    before: PlanOutput | None
    nodes: list[PlanNode]


def find_cell(split: Any, takers: Takers) -> Cell | None:
    """The cell whose gates this node splits; None if it is none of that form, in float32 and known sizes."""
    if split.type != "Split" or split.attributes["num_split"] != 4 or constant_of(split.inputs[0]) != 1:
        return None
    product = _biased_product(split.inputs[1].op)
    if product is None:
        return None
    rows, weights, bias, nodes = product
    gates = [gate for part in split.outputs if (gate := _gate(part, takers)) is not None]
    if len(gates) != 4:
        return None
    tanhs = [i for i, gate in enumerate(gates) if gate[-1].type == "Tanh"]
    values = [gate[-1].outputs[0] for gate in gates]
    if len(tanhs) != 1:
        return None
    candidate = values[tanhs[0]]
    for i, value in enumerate(values):
        written = times(value, candidate, takers) if i != tanhs[0] else None
        found = None if written is None else _state(written, values, takers)
        if found is None:
            continue
        forget, kept, c, state = found
        squashed = next((n for n in takers.get(state, ()) if n.type == "Tanh"), None)
        if squashed is None:
            return None
        last = 6 - i - tanhs[0] - forget
        output = times(squashed.outputs[0], values[last], takers)
        added = {j: _addition(gate) or 0.0 for j, gate in enumerate(gates) if len(gate) > 1}
        if output is None or added.keys() - {forget} or len({i, forget, last, tanhs[0]}) != 4:
            return None
        inner: list[Any] = [written, kept, state.op, squashed, output]
        nodes += [split, *(node for gate in gates for node in gate), *inner]
        cell = Cell(
            rows.op.inputs[0], rows.op.inputs[1], c, weights, bias, added.get(forget, 0.0),
            (i, forget, tanhs[0], last), rows, value, values[forget], candidate, values[last],
            squashed.outputs[0], state, output.outputs[0], nodes,
        )  # fmt: skip
        return cell if _suits(cell) else None
    return None


def _suits(cell: Cell) -> bool:
    x, h, product, parts = cell.x.dims, cell.h.dims, cell.weights.dims, cell.state.dims
    if any(dims is None or None in dims or len(dims) != 2 or 0 in dims for dims in (x, h, product, parts)):
        return False  # oneDNN makes nothing of nothing
    assert x is not None and h is not None
    same = cell.c.dims == h == parts and product == (x[1] + h[1], 4 * h[1]) and x[0] == h[0]  # type: ignore[operator]
    return same and all(value.dtype.base_dtype is dtypes.float32 for value in (cell.x, cell.weights))


def _biased_product(added: PlanNode) -> tuple[PlanOutput, PlanOutput, PlanOutput, list[PlanNode]] | None:
    """Of a sum ``[x, h] weights + bias``: the rows, the weights, the bias, and the nodes."""
    if added.type not in ("BiasAdd", *_ADDS) or added.attributes.get("data_format", "NHWC") != "NHWC":
        return None
    for total, bias in (added.inputs, added.inputs[::-1]):
        product: PlanNode = total.op
        if product.type != "MatMul" or bias.dims is None or len(bias.dims) != 1:
            continue
        rows, weights = product.inputs
        turned = product.attributes["transpose_a"] or product.attributes["transpose_b"]
        joined: PlanNode = rows.op
        if turned or joined.type != "ConcatV2" or len(joined.inputs) != 3:
            return None
        if constant_of(joined.inputs[2]) not in (1, -1) or bias.dims != (weights.dims or ())[1:]:
            return None
        return rows, weights, bias, [joined, product, added]
    return None


def _gate(part: PlanOutput, takers: Takers) -> list[PlanNode] | None:
    """The activation of a part, after the addition of a number to it if there is one."""
    nodes: list[PlanNode] = []
    while len(takers.get(part, ())) == 1:
        node = takers[part][0]
        nodes.append(node)
        if node.type in ("Sigmoid", "Tanh"):
            return nodes
        if len(nodes) > 1 or node.type not in _ADDS or _addition(nodes) is None:
            return None
        part = node.outputs[0]
    return None


def _addition(gate: list[PlanNode]) -> float | None:
    numbers = [constant_of(x) for x in gate[0].inputs]
    return next((number for number in numbers if number is not None), None)


def _state(
    written: PlanNode, gates: list[PlanOutput], takers: Takers
) -> tuple[int, PlanNode, PlanOutput, PlanOutput] | None:
    """What is added to what the input gate lets in: the place of the forget gate, the node that multiplies
    the old state by it, the old state, and the new one."""
    after = takers.get(written.outputs[0], [])
    if len(after) != 1 or after[0].type not in _ADDS:
        return None
    kept: Any = other(after[0], written.outputs[0]).op
    if kept.type != "Mul":
        return None
    for i, gate in enumerate(gates):
        if gate in kept.inputs and gate.op.type == "Sigmoid":
            return i, kept, other(kept, gate), after[0].outputs[0]
    return None


def other(node: PlanNode, x: PlanOutput) -> PlanOutput:
    """Of a node of two inputs the one that is not `x`."""
    a, b = node.inputs
    found: PlanOutput = b if a is x else a
    return found


def times(x: PlanOutput, y: PlanOutput, takers: Takers) -> PlanNode | None:
    """The node that multiplies these two."""
    for node in takers.get(x, ()):
        if node.type == "Mul" and y in node.inputs and other(node, y) is x:
            return node
    return None


def find_gradient(cell: Cell, takers: Takers) -> CellGradient | None:
    """The gradient of a cell, None if there is none in full."""
    slopes = [
        _slope(value, takers)
        for value in (cell.input_gate, cell.forget_gate, cell.candidate, cell.output_gate, cell.squashed)
    ]
    if any(slope is None for slope in slopes):
        return None
    factors = [slope.inputs[1].op for slope in slopes if slope is not None]
    if any(node.type != "Mul" for node in factors):
        return None
    by_input, by_forget, by_candidate, by_output, by_squashed = factors
    dy = other(by_output, cell.squashed)
    through = slopes[4].outputs[0]  # type: ignore[union-attr]
    dc, after, sums = through, list(takers.get(through, [])), list[PlanNode]()
    if len(after) == 1 and after[0].type in SUMS:
        dc, sums = after[0].outputs[0], after
    expected = (
        (by_input, dc, cell.candidate), (by_forget, dc, cell.c), (by_candidate, dc, cell.input_gate),
        (by_output, dy, cell.squashed), (by_squashed, dy, cell.output_gate),
    )  # fmt: skip
    if any(set(node.inputs) != {a, b} for node, a, b in expected):
        return None
    parts: dict[int, PlanOutput] = {
        place: s.outputs[0] for place, s in zip(cell.order, slopes) if s is not None
    }
    joined = takers.get(parts[0], [])
    if len(joined) != 1 or joined[0].type != "ConcatV2" or constant_of(joined[0].inputs[-1]) not in (1, -1):
        return None
    if joined[0].inputs[:-1] != [parts[i] for i in range(4)]:
        return None
    before = times(cell.forget_gate, dc, takers)
    nodes = [*(s for s in slopes if s is not None), *factors, *sums, *joined]
    results = _results(cell, joined[0].outputs[0], takers, nodes)
    if before is not None:
        nodes.append(before)
    return CellGradient(dy, through, dc, *results, None if before is None else before.outputs[0], nodes)


def _slope(value: PlanOutput, takers: Takers) -> PlanNode | None:
    """The gradient of the activation whose result is `value`."""
    kind = value.op.type + "Grad"
    found = [node for node in takers.get(value, ()) if node.type == kind and node.inputs[0] is value]
    return found[0] if len(found) == 1 else None


def _results(
    cell: Cell, gates: PlanOutput, takers: Takers, nodes: list[PlanNode]
) -> tuple[PlanOutput | None, PlanOutput | None, PlanOutput | None, PlanOutput | None]:
    """By weights, bias, x and h, from the gradient by the sums of a cell's gates; adds their `nodes`."""
    weights = bias = dx = dh = None
    for node in takers.get(gates, ()):
        turned = node.attributes.get("transpose_a"), node.attributes.get("transpose_b")
        if node.type == "BiasAddGrad" or _sums_rows(node):
            bias = node.outputs[0]
        elif node.type == "MatMul" and node.inputs == [cell.rows, gates] and turned == (True, False):
            weights = node.outputs[0]
        elif node.type == "MatMul" and node.inputs == [gates, cell.weights] and turned == (False, True):
            after = takers.get(node.outputs[0], [])
            if len(after) == 1 and after[0].type == "SplitV" and _splits(after[0], cell):
                dx, dh = after[0].outputs
                nodes += after
        else:
            continue
        nodes.append(node)
    return weights, bias, dx, dh


def _sums_rows(node: PlanNode) -> bool:
    """Whether it is the sum of a matrix's rows."""
    axes = node.constant(1) if node.type == "Sum" and not node.attributes["keep_dims"] else None
    return axes is not None and axes.ravel().tolist() in ([0], [-2])


def _splits(node: PlanNode, cell: Cell) -> bool:
    """Whether it takes a row apart again as the cell put it together."""
    sizes, axis = node.constant(1), constant_of(node.inputs[2])
    wanted = [x.dims[1] for x in (cell.x, cell.h)]  # type: ignore[index]
    return sizes is not None and sizes.tolist() == wanted and axis in (1, -1)
