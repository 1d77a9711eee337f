"""Updates of rows by machine code: ``SparseApplyX`` and ``ResourceSparseApplyX`` as one call.

    SparseApplyAdagrad(var, accum, lr, rows, indices)

becomes ``_RowUpdate(var, accum, lr, rows, indices)``, whose kernel is the machine code of
`native/updates/row_update_code.py` by the rule of ``ApplyAdagrad`` (`native_rules.py`). The op's own kernel,
which gathers the rows and puts them back, does the same until the code is there, and for arguments that the
code is not for. Updates whose result somebody takes, that lock, or whose variable's shape is not known stay.
"""

from __future__ import annotations

import math
from typing import Any

from flowstone.framework.declarations.kernel import CPU, Call, Input
from flowstone.framework.declarations.operation import op, registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.lowering.updates.native_rules import rule_of
from flowstone.native.clusters import kernels
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.numerics.elements import suits
from flowstone.native.updates.row_update_code import row_update_kernel
from flowstone.native.updates.updates import RowUpdate, Rule
from flowstone.ops.variables.row_steps import Repeats, repeats
from flowstone.ops.variables.stateful import ALL_NUMBERS, handle_dims
from flowstone.rewriting.patterns import substitute

__all__ = ["compile_row_updates"]

_APPLYING = ("SparseApply", "ResourceSparseApply")


def compile_row_updates(subgraph: Subgraph) -> None:
    """Replaces updates of rows that there is machine code for."""
    updates = [node for node in subgraph.nodes if node.type.startswith(_APPLYING)]
    if not updates or not kernels.is_on() or not host.variable_offset():
        return
    used = {x for node in subgraph.nodes for x in node.inputs} | set(subgraph.fetches)
    places: dict[PlanNode, list[PlanNode]] = {}
    for node in updates:
        if not used.intersection(node.outputs) and _rule(node) is not None:
            places[node] = [_compiled(subgraph, node)]
            subgraph.log.append(("compile_row_updates", node.name, "machine code for rows"))
    if places:
        substitute(subgraph, places, {})


class _Arguments:
    """Which inputs of an update of rows are what."""

    def __init__(self, node: PlanNode) -> None:
        names = [argument.name for argument in node.declaration.inputs]
        self.rows = names.index("grad")
        self.indices = self.rows + 1
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


def _rule(node: PlanNode) -> Rule | None:
    """The rule of an update that can be compiled."""
    if node.attributes["use_locking"] or not node.attributes.get("update_slots", True):
        return None
    dims, dtype = _held_dims(node), node.attributes["T"].name
    if not dims or not math.prod(dims) or dtype not in FLOATS:
        return None
    name = node.type.removeprefix("Resource").replace("SparseApply", "Apply")
    constants = [node.constant(i) for i in _Arguments(node).numbers]
    rule = rule_of(name, node.attributes.get("use_nesterov", False), constants)
    if rule is None or not all(suits(step, [dtype] * len(x), {}) for step, x in rule.steps):
        return None
    return rule


def _compiled(subgraph: Subgraph, node: PlanNode) -> PlanNode:
    at = _Arguments(node)
    inputs: list[PlanOutput] = [node.inputs[i] for i in (*at.held, *at.numbers, at.rows, at.indices)]
    is_resource = node.type.startswith("Resource")
    attributes = {
        "T": node.attributes["T"].base_dtype,
        "Tindices": node.attributes["Tindices"],
        "update": node.type,
        "replaced": node,
        "M": len(at.held),
        "K": len(at.numbers),
    }
    new = subgraph.new_node(
        registry["_RowResourceUpdate" if is_resource else "_RowUpdate"],
        inputs,
        attributes,
        like=node,
        group_sizes=(len(at.held), len(at.numbers), 1, 1),
    )
    new.control_inputs = list(node.control_inputs)
    return new


# ---- the op


def _kernel(node: Any, env: Any) -> Any:
    replaced: PlanNode = node.attributes["replaced"]
    rule, at, dims = _rule(replaced), _Arguments(replaced), _held_dims(replaced)
    by_rows: Any = registry[node.attributes["update"]].kernels[CPU](replaced, env)
    kind = repeats(replaced, at.indices)
    constants = [replaced.constant(i) for i in at.numbers]
    assert rule is not None and dims is not None
    update = RowUpdate(
        rule,
        replaced.attributes["T"].name,
        dims[0],
        math.prod(dims[1:]),
        replaced.attributes["Tindices"].name,
        kind is Repeats.SUMMED,
        kind is not Repeats.NEVER,
        tuple([each is not None for each in constants]),
        len(dims) == 2,
    )
    kernel = row_update_kernel(update, lambda *arguments: otherwise(*arguments))
    otherwise = _Otherwise(kernel, by_rows, at)
    held, numbers = len(at.held), len(at.numbers)
    arrays = [*map(Input, range(held)), Input(held + numbers), Input(held + numbers + 1)]
    words = [Input(held + i) if each is None else float(each.item()) for i, each in enumerate(constants)]
    return Call(kernel, *arrays, *words)


class _Otherwise:
    """What the machine code calls for arguments that it is not for: itself again with rows one behind the
    other, or else the kernel of the update that was replaced."""

    def __init__(self, kernel: Any, by_rows: Call, at: _Arguments) -> None:
        self._kernel, self._by_rows, self._at = kernel, by_rows, at

    def __call__(self, *arguments: Any) -> None:
        at, held = self._at, len(self._at.held)
        rows, indices, *numbers = arguments[held:]
        if self._kernel.is_compiled and not rows.is_contiguous():
            self._kernel(*arguments[:held], rows.contiguous(), indices, *numbers)
            return
        inputs: list[Any] = [None] * (held + len(numbers) + 2)
        for i, value in zip((*at.held, at.rows, at.indices, *at.numbers), arguments):
            inputs[i] = value
        self._by_rows(*inputs)


for _name, _held in (("_RowUpdate", "Ref(M*T)"), ("_RowResourceUpdate", "M*resource")):
    _declaration = op(
        _name,
        f"held: {_held}, numbers: K*T, rows: T, indices: Tindices ->",
        "update: string ; K: int >= 0 ; Tindices: type in [int32, int64]",
        stateful=True,
        mutates=[0],
        T=ALL_NUMBERS,
    )
    _declaration.infer(lambda node: None)
    _declaration.kernel(CPU)(_kernel)
    _declaration.not_differentiable()
