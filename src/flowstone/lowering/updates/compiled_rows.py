"""Updates of rows by machine code: ``SparseApplyX``, ``ScatterAdd`` and their kin as one call.

    SparseApplyAdagrad(var, accum, lr, rows, indices)

becomes ``_RowUpdate(var, accum, lr, rows, indices)``, whose kernel is the machine code of
`native/updates/row_update_code.py` by the rule of ``ApplyAdagrad`` (`native_rules.py`). The op's own kernel,
which gathers the rows and puts them back, does the same until the code is there, and for arguments that the
code is not for. Updates whose result somebody takes, that lock, or whose variable's shape is not known stay.

Descent by a gradient of rows is ``ScatterSub(var, indices, rows * rate)``. A constant rate becomes a number
of the update, with the same bits. So many rows that a team of threads adds them faster stay with ScatterSub,
but rows that are summed first where their indices are equal, which `embedding_lookup_sparse` has

    ids, places = Unique(indices)
    ScatterSub(var, ids, SparseSegmentMeanGrad(dy, places, segments, …) * rate)    # or UnsortedSegmentSum

do become ``_RowUpdate(var, rate, rows, indices) summed=True``, without a list of the distinct ones.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, Call, Input
from flowstone.framework.declarations.operation import op, registry
from flowstone.framework.declarations.work import input_at
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.lowering.updates.native_rules import rule_of
from flowstone.lowering.updates.row_updates import RepeatedRows, repeated_rows
from flowstone.native.clusters import kernels
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.numerics.elements import suits
from flowstone.native.updates.row_update_code import row_update_kernel
from flowstone.native.updates.updates import RowUpdate, Rule
from flowstone.ops.numbers.segment_reductions import sum_rows
from flowstone.ops.variables.row_steps import Repeats, repeats
from flowstone.ops.variables.stateful import ALL_NUMBERS, handle_dims
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.patterns import remove_unneeded, substitute

__all__ = ["compile_row_updates"]

_APPLYING = ("SparseApply", "ResourceSparseApply")
_SCATTERS = ("ScatterAdd", "ScatterSub", "ResourceScatterAdd", "ResourceScatterSub")


def compile_row_updates(subgraph: Subgraph) -> None:
    """Replaces updates of rows that there is machine code for."""
    updates = [node for node in subgraph.nodes if node.type.startswith(_APPLYING) or node.type in _SCATTERS]
    if not updates or not kernels.is_on() or not host.variable_offset():
        return
    consumers, fetched = subgraph.consumers(), set(subgraph.fetches)
    liveness = subgraph.analysis(Liveness)
    places: dict[PlanNode, list[PlanNode]] = {}
    for node in updates:
        if any([x in fetched or consumers.get(x) for x in node.outputs]):
            continue
        rate = summed = None

        def is_alone(rows: PlanOutput, taker: PlanNode, update: PlanNode = node) -> bool:
            is_taken = consumers[rows] != [taker] or rows in fetched
            return not is_taken and liveness.node(rows.op) == liveness.node(update)

        if node.type in _SCATTERS:
            rows, taker = node.inputs[2], node
            if is_alone(rows, node):
                rate = _factor(rows.op)
            if rate is not None:
                rows, taker = rows.op.inputs[1 - rate], rows.op
            if is_alone(rows, taker):
                summed = _summed(subgraph, rows, node, liveness)
            if summed is None and not _is_worth_it(node):
                continue
            if summed is None and rate is not None and node.inputs[2].op.constant(rate) is None:
                rate = None
        if _rule(node, rate is not None) is not None:
            places[node] = _compiled(subgraph, node, rate, summed)
            subgraph.log.append(("compile_row_updates", node.name, "machine code for rows"))
    if places:
        substitute(subgraph, places, {})
        remove_unneeded(subgraph)


def _is_worth_it(node: PlanNode) -> bool:
    """Whether a scatter adds rows to some of its variable's, which are known to be few."""
    dims, rows, indices = _held_dims(node), node.inputs[2].static_shape, node.inputs[1].dims
    if not dims or rows is None or indices is None or len(indices) != 1 or rows[1:] != dims[1:]:
        return False
    size = math.prod(rows) * node.dtype(2).size
    return 0 < size < machine.current().profile.copies_team


def _summed(subgraph: Subgraph, sums: PlanOutput, node: PlanNode, liveness: Liveness) -> RepeatedRows | None:
    """The rows, of which these are the sums, that a scatter can sum itself; None if there are none."""
    dims = _held_dims(node)
    if dims is None or sums.dims is None or tuple(sums.dims[1:]) != dims[1:]:
        return None
    found = repeated_rows(subgraph, sums, node.inputs[1])
    if found is None or any(liveness.node(each) != liveness.node(node) for each in found.replaced):
        return None
    return found


def _factor(product: PlanNode) -> int | None:
    """Which input of the node that makes rows is a number that they are multiplied by; None if none is."""
    if product.type != "Mul" or product.control_inputs:
        return None
    for i in (0, 1):
        if product.inputs[i].dims == () and product.inputs[1 - i].dims == product.outputs[0].dims:
            return i
    return None


class _Arguments:
    """Which inputs of an update of rows are what."""

    def __init__(self, node: PlanNode) -> None:
        names = [argument.name for argument in node.declaration.inputs]
        self.rows = names.index("updates" if node.type in _SCATTERS else "grad")
        self.indices = names.index("indices")
        held = [  # of references only those that it changes: a number may be one, too
            i
            for i, x in enumerate(node.inputs)
            if node.input_argument(i).is_ref or x.dtype.name == "resource"
        ]
        self.held = held
        self.numbers = [i for i in range(len(held), len(names)) if i not in (self.rows, self.indices)]


def _held_dims(node: PlanNode) -> tuple[int, ...] | None:
    dims = node.inputs[0].static_shape if node.inputs[0].dtype.is_ref else handle_dims(node)
    if dims is None or any(n is None for n in dims):
        return None
    return tuple([n for n in dims if n is not None])


def _dtype(node: PlanNode) -> Any:
    attributes = node.attributes
    return (attributes["T"] if "T" in attributes else attributes["dtype"]).base_dtype


def _rule(node: PlanNode, has_rate: bool) -> Rule | None:
    """The rule of an update that can be compiled; `has_rate`: its rows are multiplied by a number first."""
    if node.attributes.get("use_locking") or not node.attributes.get("update_slots", True):
        return None
    dims, dtype = _held_dims(node), _dtype(node).name
    if not dims or not math.prod(dims) or dtype not in FLOATS:
        return None
    name = node.type.removeprefix("Resource").replace("SparseApply", "Apply")
    constants = [node.constant(i) for i in _Arguments(node).numbers]
    rule = rule_of(name, node.attributes.get("use_nesterov", False), constants, has_rate)
    if rule is None or not all(suits(step, [dtype] * len(x), {}) for step, x in rule.steps):
        return None
    return rule


def _compiled(
    subgraph: Subgraph, node: PlanNode, rate: int | None, summed: RepeatedRows | None
) -> list[PlanNode]:
    """Nodes, of which the last is the update by machine code; `rate`: the number among the inputs of what
    makes the rows; `summed`: the rows that it sums."""
    at = _Arguments(node)
    indices = node.inputs[at.indices]
    numbers, rows = [node.inputs[i] for i in at.numbers], node.inputs[at.rows]
    if rate is not None:
        product = rows.op
        numbers, rows = [*numbers, product.inputs[rate]], product.inputs[1 - rate]
    if summed is not None:
        rows, indices = summed.rows, summed.indices
    inputs: list[PlanOutput] = [*[node.inputs[i] for i in at.held], *numbers, rows, indices]
    is_resource = node.type.startswith("Resource")
    attributes = {
        "T": _dtype(node),
        "Tindices": indices.dtype,
        "update": node.type,
        "summed": summed is not None,
        "replaced": node,
        "M": len(at.held),
        "K": len(numbers),
    }
    new = subgraph.new_node(
        registry["_RowResourceUpdate" if is_resource else "_RowUpdate"],
        inputs,
        attributes,
        like=node,
        group_sizes=(len(at.held), len(numbers), 1, 1),
    )
    new.control_inputs = list(node.control_inputs) if summed is None else summed.waits(node)
    return [*(summed.made if summed is not None else []), new]


# ---- the op


def _kernel(node: Any, env: Any) -> Any:
    replaced: PlanNode = node.attributes["replaced"]
    held, numbers = node.group_sizes[:2]
    at, dims = _Arguments(replaced), _held_dims(replaced)
    is_scaled = numbers > len(at.numbers)
    rule = _rule(replaced, is_scaled)
    by_rows: Any = registry[node.attributes["update"]].kernels[CPU](replaced, env)
    is_summed = node.attributes["summed"]
    kind = Repeats.SUMMED if is_summed else repeats(replaced, at.indices)
    constants = [node.constant(held + i) for i in range(numbers)]
    assert rule is not None and dims is not None
    update = RowUpdate(
        rule,
        node.attributes["T"].name,
        dims[0],
        math.prod(dims[1:]),
        node.attributes["Tindices"].name,
        kind is Repeats.SUMMED,
        kind is not Repeats.NEVER,
        tuple([each is not None for each in constants]),
        len(dims) == 2,
    )
    kernel = row_update_kernel(update, lambda *arguments: otherwise(*arguments))
    otherwise = _Otherwise(kernel, by_rows, at, is_scaled, is_summed)
    arrays = [*map(Input, range(held)), Input(held + numbers), Input(held + numbers + 1)]
    words = [Input(held + i) if each is None else float(each.item()) for i, each in enumerate(constants)]
    return Call(kernel, *arrays, *words)


class _Otherwise:
    """What the machine code calls for arguments that it is not for: itself again with rows one behind the
    other, or else the kernel of the update that was replaced."""

    def __init__(self, kernel: Any, by_rows: Call, at: _Arguments, is_scaled: bool, is_summed: bool) -> None:
        self._kernel, self._by_rows, self._at = kernel, by_rows, at
        self._is_scaled, self._is_summed = is_scaled, is_summed

    def __call__(self, *arguments: Any) -> None:
        at, held = self._at, len(self._at.held)
        rows, indices, *numbers = arguments[held:]
        if self._kernel.is_compiled and not rows.is_contiguous():
            self._kernel(*arguments[:held], rows.contiguous(), indices, *numbers)
            return
        if self._is_summed:
            indices, places = torch.unique(indices, return_inverse=True)
            rows = sum_rows(rows, places, len(indices))
        if self._is_scaled:
            rows = rows * numbers.pop()
        inputs: list[Any] = [None] * (held + len(numbers) + 2)
        for i, value in zip(
            (*at.held, at.rows, at.indices, *at.numbers), (*arguments[:held], rows, indices, *numbers)
        ):
            inputs[i] = value
        self._by_rows(*inputs)


for _name, _held in (("_RowUpdate", "Ref(M*T)"), ("_RowResourceUpdate", "M*resource")):
    _declaration = op(
        _name,
        f"held: {_held}, numbers: K*T, rows: T, indices: Tindices ->",
        "update: string ; summed: bool ; K: int >= 0 ; Tindices: type in [int32, int64]",
        stateful=True,
        mutates=[0],
        rows=input_at(-2),
        T=ALL_NUMBERS,
    )
    _declaration.infer(lambda node: None)
    _declaration.kernel(CPU)(_kernel)
    _declaration.not_differentiable()
