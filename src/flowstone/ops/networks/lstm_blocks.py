"""LSTM cells as one op: a step (LSTMBlockCell), a sequence (BlockLSTM), and the ops of their gradients.

Inputs are x [batch, inputs] ([time, batch, inputs] of a sequence), the cell state and output before,
`cs_prev` and `h_prev` [batch, cells], weights w [inputs + cells, 4 cells] and biases b; the columns belong
to the input gate, the new input, the forget gate and the output gate. The second version of the sequence has
the forget gate second and adds nothing to it.

    i = sigmoid(… + wci cs_prev)     f = sigmoid(… + wcf cs_prev + forget_bias)     ci = tanh(…)
    cs = clip(ci i + cs_prev f)      o = sigmoid(… + wco cs)       co = tanh(cs)        h = co o

The peepholes wci, wcf and wco [cells] count if `use_peephole` says so, and the clipping does nothing unless
`cell_clip` is positive; the gradients leave it out. Of a sequence `seq_len_max` steps are computed, the
others are zero (Hochreiter and Schmidhuber, 1997; Gers et al., 2002, for the peepholes).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import machine
from flowstone.framework.machine.array_code import framed_rows
from flowstone.framework.machine.network_code import CellGradient, CellStep, cell_gradient, cell_step
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid, unless_known
from flowstone.ops.networks.windows import require_rank

_TYPES = (dtypes.float16, dtypes.float32)
_WEIGHTS = "cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T"
_GATES = "i: T, cs: T, f: T, o: T, ci: T, co: T"
_CELL_FORM = "forget_bias: float = 1 ; cell_clip: float = 3 ; use_peephole: bool = false"
_SEQUENCE_GRADIENTS = (
    "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T"
)


def _step_cost(node: Node) -> float:
    return 2.0 * work.count(node.inputs[3]) * work.element_count((node.dims(0) or (None,))[:1])


def _sequence_cost(node: Node) -> float:
    steps = work.element_count((node.dims(1) or (None, None))[:2])
    return (
        (2.0 if node.outputs[0].dims == node.outputs[-1].dims else 6.0) * steps * work.count(node.inputs[4])
    )


def _cell_op(name: str, signature: str, attributes: str) -> OpDeclaration:
    return op(name, signature, attributes, T=_TYPES, cost=_step_cost)


def _sequence_op(name: str, signature: str, attributes: str) -> OpDeclaration:
    return op(name, signature, attributes, T=_TYPES, host=("seq_len_max",), cost=_sequence_cost)


cell_op = _cell_op("LSTMBlockCell", f"x: T, {_WEIGHTS} -> {_GATES}, h: T", _CELL_FORM)
cell_grad_op = _cell_op(
    "LSTMBlockCellGrad",
    f"x: T, {_WEIGHTS}, {_GATES}, cs_grad: T, h_grad: T -> "
    "cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
    "use_peephole: bool",
)
_SEQUENCE = f"seq_len_max: int64, x: T, {_WEIGHTS}"
_GRADIENT = f"{_SEQUENCE}, {_GATES}, h: T, cs_grad: T, h_grad: T -> {_SEQUENCE_GRADIENTS}"
sequence_op = _sequence_op("BlockLSTM", f"{_SEQUENCE} -> {_GATES}, h: T", _CELL_FORM)
sequence_grad_op = _sequence_op("BlockLSTMGrad", _GRADIENT, "use_peephole: bool")
sequence_v2_op = _sequence_op(
    "BlockLSTMV2", f"{_SEQUENCE} -> {_GATES}, h: T", "cell_clip: float = 0 ; use_peephole: bool = false"
)
sequence_grad_v2_op = _sequence_op("BlockLSTMGradV2", _GRADIENT, "use_peephole: bool")


# ---- one step


class _Form(NamedTuple):
    """What the attributes say: `forget_second` is the columns' order of the second version."""

    forget_bias: float
    clip: float
    peephole: bool
    forget_second: bool

    @staticmethod
    def of(node: Node) -> _Form:
        get = node.attributes.get
        second = node.declaration in (sequence_v2_op, sequence_grad_v2_op)
        return _Form(get("forget_bias", 0.0), get("cell_clip", 0.0), get("use_peephole", False), second)

    def split(self, columns: torch.Tensor) -> Any:
        """Those of the input gate, the new input, the forget gate, the output gate."""
        i, second, third, o = columns.chunk(4, -1)
        return (i, third, second, o) if self.forget_second else (i, second, third, o)

    def joined(self, i: torch.Tensor, ci: torch.Tensor, f: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
        """The inverse of `split`."""
        return torch.cat((i, f, ci, o) if self.forget_second else (i, ci, f, o), -1)


def _step(form: _Form, sums: torch.Tensor, before: torch.Tensor, peepholes: Any, results: Any) -> None:
    """Writes (i, cs, f, o, ci, co, h) of the weighted sums of a step and the state before it."""
    to_i, state, to_f, to_o, to_ci, co, h = results
    i, ci, f, o = form.split(sums)
    if form.peephole:
        wci, wcf, wco = peepholes
        i, f = i + wci * before, f + wcf * before
    torch.sigmoid(i, out=to_i)
    torch.add(f, form.forget_bias, out=to_f).sigmoid_()
    torch.mul(torch.tanh(ci, out=to_ci), to_i, out=state).addcmul_(before, to_f)
    if form.clip > 0:
        state.clamp_(-form.clip, form.clip)
    torch.sigmoid(o + wco * state if form.peephole else o, out=to_o)
    torch.mul(torch.tanh(state, out=co), to_o, out=h)


def _over(
    form: _Form, sums: torch.Tensor, before: torch.Tensor, peepholes: Any, results: Any
) -> Callable[[int], None]:
    """The function of a step's number that does `_step`, of whole sequences."""

    def advance(step: int) -> None:
        state = results[1][step - 1] if step else before
        _step(form, sums[step], state, peepholes, [each[step] for each in results])

    return advance


def _native(form: _Form, node: Node, env: Environment) -> CellStep | None:
    if env.device.type != "cpu":
        return None
    dtype = node.attributes["T"].torch
    return cell_step(dtype, form.peephole, form.forget_second, form.forget_bias, form.clip)


_through_sigmoid = torch.ops.aten.sigmoid_backward.default  # of a gradient and the result
_through_tanh = torch.ops.aten.tanh_backward.default


def _step_gradient(
    form: _Form, before: torch.Tensor, peepholes: Any, gates: Any, d_state: torch.Tensor, dh: torch.Tensor,
    columns: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """With respect to the state before; that for the weighted sums is written to `columns`."""
    i, _, f, o, ci, co = gates
    do = _through_sigmoid(dh * co, o)
    d_state = d_state + _through_tanh(dh * o, co)
    if form.peephole:
        d_state = d_state + do * peepholes[2]
    di, df = _through_sigmoid(d_state * ci, i), _through_sigmoid(d_state * before, f)
    dci = _through_tanh(d_state * i, ci)
    d_before: torch.Tensor = d_state * f
    if form.peephole:
        d_before = d_before + di * peepholes[0] + df * peepholes[1]
    columns.copy_(form.joined(di, dci, df, do))
    return d_before


def _gradient_over(
    form: _Form,
    first: torch.Tensor,
    peepholes: Any,
    gates: Any,
    flows: Any,
    columns: torch.Tensor,
    carried: Any,
) -> Callable[[int], None]:
    """The function of a step's number that does `_step_gradient`, of whole sequences, with what later steps
    have `carried` added to the `flows` at states and outputs; that for the state before is carried on."""

    def advance(step: int) -> None:
        before = gates[1][step - 1] if step else first
        d_state, dh = (flow[step] + more for flow, more in zip(flows, carried))
        own = [each[step] for each in gates]
        carried[0].copy_(_step_gradient(form, before, peepholes, own, d_state, dh, columns[step]))

    return advance


def _native_gradient(form: _Form, node: Node, env: Environment) -> CellGradient | None:
    if env.device.type != "cpu":
        return None
    return cell_gradient(node.attributes["T"].torch, form.peephole, form.forget_second)


def _peephole_gradients(form: _Form, before: Any, state: Any, columns: Any, like: Any) -> list[torch.Tensor]:
    """With respect to wci, wcf and wco, of steps [..., batch, cells]."""
    if not form.peephole:
        return [torch.zeros_like(each) for each in like]
    di, _, df, do = form.split(columns)
    return [(each * other).flatten(0, -2).sum(0) for each, other in ((di, before), (df, before), (do, state))]


def _check(x: torch.Tensor, before: torch.Tensor, h: torch.Tensor, w: torch.Tensor, *vectors: Any) -> None:
    """InvalidArgumentError unless inputs of one step have sizes that go together."""
    if x.dim() != 2 or before.dim() != 2:
        raise invalid(f"x and cs_prev must be 2-dimensional: {list(x.shape)}, {list(before.shape)}")
    cells = before.shape[1]
    if len(before) != len(x) or h.shape != before.shape:
        raise invalid(
            f"cs_prev and h_prev must be [{len(x)}, {cells}]: {list(before.shape)}, {list(h.shape)}"
        )
    if list(w.shape) != [x.shape[1] + cells, 4 * cells]:
        raise invalid(f"w must be [{x.shape[1] + cells}, {4 * cells}]: {list(w.shape)}")
    *peepholes, b = vectors
    if list(b.shape) != [4 * cells] or any(list(each.shape) != [cells] for each in peepholes):
        raise invalid(
            f"b must be [{4 * cells}], wci, wcf and wco [{cells}]: {[list(each.shape) for each in vectors]}"
        )


def _check_gradient(
    x: Any, before: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any, *rest: Any
) -> None:
    _check(x, before, h, w, wci, wcf, wco, b)
    if any(each.shape != before.shape for each in rest):
        raise invalid(f"gates and gradients must be {list(before.shape)}")


@cell_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    form = _Form.of(node)
    native = _native(form, node, env)
    step = functools.partial(_step, form) if native is None else native

    check = unless_known(node, _check)

    def run(x: Any, before: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any) -> list[torch.Tensor]:
        check(x, before, h, w, wci, wcf, wco, b)
        shape = before.shape
        results = [before.new_empty(shape) for _ in range(7)]
        step(torch.addmm(b, torch.cat([x, h], 1), w), before, (wci, wcf, wco), results)
        return results

    return run


@cell_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    form = _Form.of(node)
    native = _native_gradient(form, node, env)
    gradient = functools.partial(_step_gradient, form) if native is None else native
    check = unless_known(node, _check_gradient)

    def run(
        x: Any, before: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any, *rest: Any
    ) -> list[torch.Tensor]:
        check(x, before, h, w, wci, wcf, wco, b, *rest)
        *gates, d_state, dh = rest
        peepholes = (wci, wcf, wco)
        columns = before.new_empty(len(before), 4 * before.shape[1])
        d_before = gradient(before, peepholes, gates, d_state, dh, columns)
        found = _peephole_gradients(form, before, gates[1], columns, peepholes)
        return [d_before, columns, *found]

    return run


# ---- a sequence


def _check_sequence(length: torch.Tensor, x: torch.Tensor, *rest: Any) -> None:
    if x.dim() != 3 or length.dim():
        raise invalid(
            f"x must be 3-dimensional, seq_len_max one number: {list(x.shape)}, {list(length.shape)}"
        )
    _check(x.new_empty(x.shape[1:]), *rest)


def _check_sequence_gradient(length: torch.Tensor, x: torch.Tensor, *rest: Any) -> None:
    _check_sequence(length, x, *rest[:7])
    wanted = [*x.shape[:2], rest[0].shape[1]]
    if any(list(each.shape) != wanted for each in rest[7:]):
        raise invalid(f"gates and gradients must be {wanted}")


def _steps(length: torch.Tensor, x: torch.Tensor) -> int:
    steps = int(length)
    if not 0 <= steps <= x.shape[0]:
        raise invalid(f"seq_len_max must be from 0 to {x.shape[0]}, not {steps}")
    return steps


def _forward(node: Node, env: Environment) -> Kernel:
    form = _Form.of(node)
    native = _native(form, node, env)
    over = functools.partial(_over, form) if native is None else native.over
    check = unless_known(node, _check_sequence)

    def run(
        length: Any, x: Any, before: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any
    ) -> list[torch.Tensor]:
        check(length, x, before, h, w, wci, wcf, wco, b)
        steps, inputs = _steps(length, x), x.shape[2]
        sums = torch.addmm(b, x[:steps].flatten(0, 1), w[:inputs]).unflatten(0, (steps, x.shape[1]))
        recurrent, peepholes = w[inputs:], (wci, wcf, wco)
        result = [x.new_empty(*x.shape[:2], before.shape[1]) for _ in range(7)]
        advance = over(sums, before, peepholes, result)
        for step in range(steps):
            sums[step].addmm_(result[6][step - 1] if step else h, recurrent)
            advance(step)
        if steps < x.shape[0]:
            for each in result:
                _zero(each[steps:])
        return result

    return run


def _zero(x: torch.Tensor) -> None:
    is_large = x.nbytes >= machine.current().profile.streamed_copies
    code = framed_rows(x.itemsize) if is_large and x.is_cpu else None
    x.zero_() if code is None else code.fill(x, torch.zeros((), dtype=x.dtype))


def _backward(node: Node, env: Environment) -> Kernel:
    form = _Form.of(node)
    native = _native_gradient(form, node, env)
    over = functools.partial(_gradient_over, form) if native is None else native.over
    check = unless_known(node, _check_sequence_gradient)

    def run(
        length: Any,
        x: Any,
        first: Any,
        h_first: Any,
        w: Any,
        wci: Any,
        wcf: Any,
        wco: Any,
        b: Any,
        *rest: Any,
    ) -> list[torch.Tensor]:
        check(length, x, first, h_first, w, wci, wcf, wco, b, *rest)
        steps = _steps(length, x)
        *gates, h, d_states, dhs = rest
        peepholes, recurrent = (wci, wcf, wco), w[x.shape[2] :].t()
        d_state, dh = (torch.zeros_like(first, memory_format=torch.contiguous_format) for _ in range(2))
        columns = x.new_empty(steps, len(first), 4 * first.shape[1])
        advance = over(first, peepholes, gates, (d_states, dhs), columns, (d_state, dh))
        by_step = columns.unbind()
        for step in reversed(range(steps)):
            advance(step)
            torch.mm(by_step[step], recurrent, out=dh)
        dx = columns @ w[: x.shape[2]].t()
        if steps < len(x):
            dx = torch.cat([dx, dx.new_zeros(len(x) - steps, *dx.shape[1:])])
        rows = torch.cat([x[:steps], _shifted(h_first, h, steps)], 2).flatten(0, 1)
        befores = _shifted(first, gates[1], steps) if form.peephole else first
        found_peepholes = _peephole_gradients(form, befores, gates[1][:steps], columns, peepholes)
        columns = columns.flatten(0, 1)
        return [dx, d_state, dh, rows.t() @ columns, *found_peepholes, columns.sum(0)]

    return run


def _shifted(first: torch.Tensor, series: torch.Tensor, steps: int) -> torch.Tensor:
    """What was there before each of the first steps."""
    return torch.cat([first[None], series[: max(steps - 1, 0)]])[:steps]


for _sequence in (sequence_op, sequence_v2_op):
    _sequence.kernel(CPU, GPU)(_forward)
for _gradient in (sequence_grad_op, sequence_grad_v2_op):
    _gradient.kernel(CPU, GPU)(_backward)


# ---- shapes and gradients


def _infer_cell(node: Node) -> Shapes:
    x, before = require_rank(node.dims(0), 2), require_rank(node.dims(1), 2)
    return [(x[0], before[1])] * 7


def _infer_cell_gradient(node: Node) -> Shapes:
    x, before = require_rank(node.dims(0), 2), require_rank(node.dims(1), 2)
    cells = before[1]
    return [(x[0], cells), (x[0], None if cells is None else 4 * cells), *[(cells,)] * 3]


def _infer_sequence(node: Node) -> Shapes:
    x, b = require_rank(node.dims(1), 3), require_rank(node.dims(8), 1)
    return [(*x[:2], None if b[0] is None else b[0] // 4)] * 7


def _infer_sequence_gradient(node: Node) -> Shapes:
    ranks: list[tuple[int, int]] = [(1, 3), (2, 2), (3, 2), (4, 2), (5, 1), (6, 1), (7, 1), (8, 1)]
    dims: list[Dims] = [require_rank(node.dims(i), rank) for i, rank in ranks]
    return dims


def _sequence_gradient(op: Operation, *dys: Tensor) -> Gradients:
    gradient = F.BlockLSTMGradV2 if op.type == "BlockLSTMV2" else F.BlockLSTMGrad
    found = gradient.several(
        *op.inputs, *op.outputs, dys[1], dys[6], use_peephole=op.attributes["use_peephole"]
    )
    return None, *found


def _cell_gradient(op: Operation, *dys: Tensor) -> Gradients:
    x, _, h, w, *_ = op.inputs
    d_before, sums, *d_peepholes = F.LSTMBlockCellGrad.several(
        *op.inputs, *op.outputs[:-1], dys[1], dys[6], use_peephole=op.attributes["use_peephole"]
    )
    d_joined = F.MatMul(sums, w, transpose_b=True)
    offsets = F.ConcatOffset.several(1, [F.Shape(x), F.Shape(h)])
    dx, dh = F.Slice(d_joined, offsets[0], F.Shape(x)), F.Slice(d_joined, offsets[1], F.Shape(h))
    dw = F.MatMul(F.ConcatV2([x, h], 1), sums, transpose_a=True)
    return dx, d_before, dh, dw, *d_peepholes, F.BiasAddGrad(sums)


cell_op.infer(_infer_cell)
cell_grad_op.infer(_infer_cell_gradient)
cell_op.gradient(_cell_gradient)
cell_grad_op.no_gradient()
for _sequence, _gradient in ((sequence_op, sequence_grad_op), (sequence_v2_op, sequence_grad_v2_op)):
    _sequence.infer(_infer_sequence)
    _gradient.infer(_infer_sequence_gradient)
    _sequence.gradient(_sequence_gradient)
    _gradient.no_gradient()
