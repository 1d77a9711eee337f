"""The functional forms of control flow as the primitives of the white paper's section 4.4.

A conditional sends its inputs through Switches on its predicate, expands each branch behind them and joins
the results in Merges. `Case` is a chain of such Switches, one Merge joins all branches. A loop gets a frame
of its own: Enter, Merge, the condition's nodes, LoopCond, Switch, the body's nodes, NextIteration and Exit.
What the body only passes on enters as a constant of the frame.

Each function here takes the `Inliner`, the node and its `Site`, and returns an `Expansion`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.types import dtypes
from flowstone.rewriting.functions.call_sites import Expansion, Site, fail

if TYPE_CHECKING:
    from flowstone.framework.graphs.function_library import FunctionBody
    from flowstone.rewriting.functions.function_inlining import Inliner


# ---- conditionals


def lower_if(inliner: Inliner, node: PlanNode, site: Site) -> Expansion:
    """One of two branches, by what the predicate is as a bool."""
    predicate = _as_bool(inliner, node.inputs[0], node, site)
    names = node.attributes["else_branch"], node.attributes["then_branch"]
    return _lower_branches(inliner, node, site, list(names), [predicate], list(node.group(1)))


def lower_case(inliner: Inliner, node: PlanNode, site: Site) -> Expansion:
    """One of several branches: the last one if the index names none."""
    names = list(node.attributes["branches"])
    index, predicates = node.inputs[0], []
    for i in range(len(names) - 1):
        number = _constant(inliner, i, dtypes.int32, node, f"{site.prefix}/number_{i}")
        equal = inliner.add(
            "Equal", [index, number], node, f"{site.prefix}/is_{i}", site.binding(), T=dtypes.int32
        )
        predicates.append(equal.outputs[0])
    chosen_last = [names[-1], *names[-2::-1]]  # a predicate's false side leads on to what is left
    return _lower_branches(inliner, node, site, chosen_last, predicates[::-1], list(node.group(1)))


def _lower_branches(
    inliner: Inliner,
    node: PlanNode,
    site: Site,
    names: list[str],
    predicates: list[PlanOutput],
    inputs: list[PlanOutput],
) -> Expansion:
    """``names[i + 1]`` where ``predicates[i]`` is the last one that is true in the list, names[0] where none
    is; the predicates are asked from the end.
    """
    if len(names) == 1:
        return inliner.call(names[0], inputs, site)
    results: list[list[PlanOutput]] = [[] for _ in names]
    ends: list[PlanNode] = []
    pivot: PlanOutput = predicates[-1]
    taken: list[tuple[int, list[PlanOutput], PlanOutput]] = []
    for i in range(len(names) - 1, 0, -1):
        predicate = predicates[i - 1]
        split = [_switch(inliner, x, predicate, node, site) for x in (*inputs, pivot)]
        taken.append((i, [pair[1] for pair in split[:-1]], split[-1][1]))
        inputs, pivot = [pair[0] for pair in split[:-1]], split[-1][0]
    taken.append((0, inputs, pivot))
    for i, values, alive in reversed(taken):
        prefix = f"branch_{i}"
        mark = inliner.identity(alive, node, f"{site.prefix}/{prefix}/pivot")
        expansion = inliner.call(names[i], values, site.branch(mark, prefix))
        check_results(node, expansion.outputs)
        results[i] = expansion.outputs
        end = f"{site.prefix}/{prefix}/done"
        ends.append(inliner.identity(alive, node, end, expansion.effects) if expansion.effects else mark)
    outputs = [
        _merge(inliner, list(values), node, f"{site.prefix}/merge_{i}")
        for i, values in enumerate(zip(*results))
    ]
    has_effects = any(end.name.endswith("/done") for end in ends)
    waits = []
    if has_effects or not outputs:
        waits = [_merge(inliner, [end.outputs[0] for end in ends], node, f"{site.prefix}/done").op]
    return Expansion(outputs, waits)


def _switch(
    inliner: Inliner, x: PlanOutput, predicate: PlanOutput, node: PlanNode, site: Site
) -> tuple[PlanOutput, PlanOutput]:
    """Both sides of a value, as Switch orders them: (false, true)."""
    key = x, predicate
    found = inliner.switches.get(key)
    if found is None or site.controls:
        name = f"{site.prefix}/switch"
        found = inliner.add("Switch", [x, predicate], node, name, site.controls, T=x.dtype.base_dtype)
        if not site.controls:
            inliner.switches[key] = found
    return found.outputs[0], found.outputs[1]


def _merge(inliner: Inliner, values: list[PlanOutput], node: PlanNode, name: str) -> PlanOutput:
    dtype = values[0].dtype.base_dtype
    return inliner.add("Merge", values, node, name, N=len(values), T=dtype).outputs[0]


def _as_bool(inliner: Inliner, x: PlanOutput, node: PlanNode, site: Site) -> PlanOutput:
    if x.dtype.base_dtype is dtypes.bool and not x.dims:  # of unknown rank: then it is a scalar
        return x
    converted = inliner.add("ToBool", [x], node, f"{site.prefix}/predicate", T=x.dtype.base_dtype)
    return converted.outputs[0]


def _constant(inliner: Inliner, value: Any, dtype: Any, node: PlanNode, name: str) -> PlanOutput:
    array = np.array(value, dtype.as_numpy_dtype)
    return inliner.add("Const", [], node, name, value=array, dtype=dtype).outputs[0]


def check_results(node: PlanNode, outputs: list[PlanOutput]) -> None:
    """InvalidArgumentError unless a function's results are what the node that calls it promises."""
    if len(outputs) != len(node.outputs):
        fail(node, f"The function returns {len(outputs)} values, but the node has {len(node.outputs)}")
    for i, (x, declared) in enumerate(zip(outputs, node.outputs)):
        if x.dtype.base_dtype is not declared.dtype.base_dtype:
            fail(
                node,
                f"Output {i} of type {x.dtype.base_dtype.name} does not match declared output type "
                f"{declared.dtype.name}",
            )


# ---- loops


Part = Callable[[list[PlanOutput], Site], list[PlanOutput]]


def lower_while(inliner: Inliner, node: PlanNode, site: Site) -> Expansion:
    """``while cond(x): x = body(x)``."""
    condition, body = node.attributes["cond"], node.attributes["body"]
    read = inliner.located(lambda: site.library.body(body), node)
    shapes = [x.dims for x in node.outputs]
    return _Loop(inliner, node, site).write(
        list(node.inputs),
        _passed_on(read),
        lambda values, inside: inliner.call(condition, values, inside).outputs,
        lambda values, inside: inliner.call(body, values, inside).outputs,
        shapes,
    )


def lower_for(inliner: Inliner, node: PlanNode, site: Site) -> Expansion:
    """``for i in range(start, limit, delta): x = body(i, x)``."""
    start, limit, delta = node.inputs[:3]
    body = node.attributes["body"]
    read = inliner.located(lambda: site.library.body(body), node)
    passed = _passed_on(read, skipped=1)

    def number(op_type: str, x: PlanOutput, y: PlanOutput, name: str) -> PlanOutput:
        added = inliner.add(op_type, [x, y], node, f"{site.prefix}/{name}", T=dtypes.int32)
        return added.outputs[0]

    def goes_on(values: list[PlanOutput], inside: Site) -> list[PlanOutput]:
        """(i - limit) * delta < 0, whichever way it counts."""
        left = number("Mul", number("Sub", values[0], values[1], "left"), values[2], "signed")
        zero = _constant(inliner, 0, dtypes.int32, node, f"{site.prefix}/zero")
        return [number("Less", left, zero, "goes_on")]

    def step(values: list[PlanOutput], inside: Site) -> list[PlanOutput]:
        results = inliner.call(body, [values[0], *values[3:]], inside).outputs
        return [number("AddV2", values[0], values[2], "next"), values[1], values[2], *results]

    expansion = _Loop(inliner, node, site).write(
        [start, limit, delta, *node.inputs[3:]],
        [False, True, True, *passed],
        goes_on,
        step,
        [(), (), (), *([None] * len(node.outputs))],
    )
    expansion.outputs = expansion.outputs[3:]
    return expansion


def _passed_on(body: FunctionBody, skipped: int = 0) -> list[bool]:
    """Which results of a loop's body are its own arguments, unchanged."""
    return [_origin(y) is x for x, y in zip(body.inputs[skipped:], body.outputs)]


def _origin(tensor: Any) -> Any:
    while tensor.op.declaration.role == "identity" and not tensor.op.control_inputs:
        tensor = tensor.op.inputs[0]
    return tensor


class _Loop:
    """One loop's frame."""

    def __init__(self, inliner: Inliner, node: PlanNode, site: Site) -> None:
        self.inliner, self.node, self.site = inliner, node, site

    def write(
        self,
        inputs: list[PlanOutput],
        passed_on: list[bool],
        condition: Part,
        body: Part,
        shapes: Sequence[Any],
    ) -> Expansion:
        """`passed_on[i]`: variable i never changes; `shapes`: what holds in every iteration."""
        if not inputs:
            fail(self.node, "A loop without variables would have no end")
        inliner, node, site = self.inliner, self.node, self.site
        changing = [i for i in range(len(inputs)) if not passed_on[i]] or [0]
        values, merges = self._enter(inputs, changing, shapes)
        pivot = merges[changing[0]]
        predicates = condition(values, site.branch(pivot, "cond"))
        if len(predicates) != 1:
            fail(node, f"The condition must return one value, but returns {len(predicates)}")
        predicate = _as_bool(inliner, predicates[0], node, site)
        loop_cond = inliner.add("LoopCond", [predicate], node, f"{site.prefix}/LoopCond").outputs[0]
        exits: dict[int, PlanOutput] = {}
        for i in changing:
            exits[i], values[i] = self._split(merges[i].outputs[0], loop_cond)
        mark = inliner.identity(values[changing[0]], node, f"{site.prefix}/body/pivot")
        results = body(values, site.branch(mark, "body"))
        if len(results) != len(inputs):
            fail(node, f"The body returns {len(results)} values for {len(inputs)} variables")
        for i in changing:
            next_value = self._add("NextIteration", results[i])
            merges[i].inputs[1] = next_value
        outputs = [self._add("Exit", exits[i]) if i in exits else x for i, x in enumerate(inputs)]
        return Expansion(outputs, [outputs[changing[0]].op])

    def _enter(
        self, inputs: list[PlanOutput], changing: list[int], shapes: Sequence[Any]
    ) -> tuple[list[PlanOutput], dict[int, PlanNode]]:
        """The values at the head of an iteration, and the Merges of those that change."""
        values: list[PlanOutput] = []
        merges: dict[int, PlanNode] = {}
        for i, x in enumerate(inputs):
            entered = self._add(
                "Enter",
                x,
                self.site.binding(),
                frame_name=self.site.prefix,
                is_constant=i not in changing,
                parallel_iterations=self.node.attributes.get("parallel_iterations", 10),
            )
            if i in changing:
                merges[i] = merge = self.inliner.add(
                    "Merge", [entered, entered], self.node, f"{self.site.prefix}/Merge",
                    N=2, T=x.dtype.base_dtype,
                )  # fmt: skip
                merge.outputs[0].dims = shapes[i]
                values.append(merge.outputs[0])
            else:
                values.append(entered)
        return values, merges

    def _split(self, x: PlanOutput, loop_cond: PlanOutput) -> tuple[PlanOutput, PlanOutput]:
        name = f"{self.site.prefix}/Switch"
        switch = self.inliner.add("Switch", [x, loop_cond], self.node, name, T=x.dtype.base_dtype)
        return switch.outputs[0], self._add("Identity", switch.outputs[1])

    def _add(
        self, op_type: str, x: PlanOutput, controls: Sequence[PlanNode] = (), **attributes: Any
    ) -> PlanOutput:
        name = f"{self.site.prefix}/{op_type}"
        attributes["T"] = x.dtype.base_dtype
        return self.inliner.add(op_type, [x], self.node, name, controls, **attributes).outputs[0]


LOWERINGS: dict[str, Callable[[Inliner, PlanNode, Site], Expansion]] = {
    "If": lower_if,
    "StatelessIf": lower_if,
    "Case": lower_case,
    "StatelessCase": lower_case,
    "While": lower_while,
    "StatelessWhile": lower_while,
    "For": lower_for,
}
