"""Loops of LSTM cells as one kernel a layer, and their gradients as another.

A loop of a known number of iterations whose body is a chain of cells (`lstm_loop_layers.py`) is its layers'
kernels (`lstm_kernels.py`), and so is the loop of its gradient. What a loop reads of an array at its
counter is gathered before, what it writes is scattered after; `whole_arrays.py` does away with the arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.lowering.recurrences.lstm_cells import Cell
from flowstone.lowering.recurrences.lstm_loop_layers import Match, find_layers
from flowstone.rewriting.analyses.counted_loops import Loop, Loops, storing
from flowstone.rewriting.analyses.frames import ENTERS, order_by_frames
from flowstone.rewriting.analyses.loop_variables import LoopVariable, entered
from flowstone.rewriting.patterns import in_order, remove_unneeded, substitute_in_order


def join_lstm_loops(subgraph: Subgraph) -> None:
    """Replaces loops of LSTM cells, and their gradients."""
    types = {node.type for node in subgraph.nodes}
    if "Split" not in types or not types & ENTERS or not subgraph.machine.has_onednn:
        return
    tried: set[str] = set()
    while True:
        loops = Loops(subgraph)
        found = None
        for loop in loops.by_frame.values():
            if found is None and loop.frame.name not in tried:
                tried.add(loop.frame.name)
                found = find_layers(loop, loops)
        if found is None:
            return
        _Replacement(subgraph, found).make()
        cells = f"{len(found.layers)} layers of LSTM cells, {found.steps} steps"
        reason = cells + ", and their gradients" * (found.backward is not None)
        subgraph.log.append(("join_lstm_loops", found.forward.variables[0].merge.name, reason))


class _Replacement:
    """The nodes that stand for a loop and that of its gradient."""

    def __init__(self, subgraph: Subgraph, match: Match) -> None:
        self._subgraph, self._match = subgraph, match
        self._replaced: dict[PlanOutput, PlanOutput] = {}
        self._new: list[PlanNode] = []
        self._like = match.forward.variables[0].merge
        self._waits: list[PlanNode] = []
        self._stacked: dict[PlanOutput, PlanOutput] = {}  # values of all steps, by what they are in one
        self._kernels: list[PlanNode] = []  # of the layers

    def make(self) -> None:
        """Puts them into the subgraph."""
        match = self._match
        places: dict[PlanNode, list[PlanNode]] = {stack: [] for stack in match.stacks}
        replacements = {stack: list(stack.control_inputs) for stack in match.stacks}
        loops = [(match.forward, self._make_forward)]
        if match.backward is not None:
            loops.append((match.backward, self._make_backward))
        for loop, make in loops:
            inner = set(loop.nodes)
            waits = (node for each in loop.nodes for node in each.control_inputs if node not in inner)
            self._new, self._waits = [], list(dict.fromkeys(waits))
            self._like = loop.variables[0].merge
            last = make(loop)
            places.update({node: [] for node in loop.nodes})
            places[loop.nodes[-1]] = self._new
            replacements.update({node: [last] for node in loop.nodes})
        for new in (node for nodes in places.values() for node in nodes):
            new.control_inputs = [y for x in new.control_inputs for y in replacements.get(x, [x])]
        substitute_in_order(self._subgraph, places, self._replaced, replacements, self._arrange)
        remove_unneeded(self._subgraph)

    def _arrange(self) -> None:
        if not order_by_frames(self._subgraph).exist:
            self._subgraph.nodes = in_order(self._subgraph.nodes)

    def _make_forward(self, loop: Loop) -> PlanNode:
        self._gather(loop)
        for layer in self._match.layers:
            cell = layer.cell
            constants = [entered(cell.weights), entered(cell.bias)]
            first = [each.enter.inputs[0] for each in (layer.h, layer.c)]
            kernel = self._node(
                "_LSTMSequence",
                [self._stacked[cell.x], *first, *constants],
                {**self._attributes(cell), "training": layer.gradient is not None},
                name=cell.product.op.name,
            )
            self._stacked[cell.output] = kernel.outputs[0]
            self._leave(layer.h, kernel.outputs[1])
            self._leave(layer.c, kernel.outputs[2])
            self._kernels.append(kernel)
        for each in loop.counters():
            if each.exit is not None:
                number = np.array(self._match.steps, each.value.dtype.as_numpy_dtype)
                self._leave(each, self._constant(number, "steps"))
        self._scatter(loop)
        return self._kernels[-1]

    def _make_backward(self, loop: Loop) -> PlanNode:
        self._gather(loop)
        kernel = self._kernels[-1]
        for layer, forward in list(zip(self._match.layers, self._kernels))[::-1]:
            if layer.gradient is None or layer.dh is None or layer.dc is None:
                continue
            x, h, c, weights = forward.inputs[:4]
            given = [self._stacked[term] for term in layer.dy]
            last = [each.enter.inputs[0] for each in (layer.dh, layer.dc)]
            inputs = [x, *forward.outputs[:3], h, c, forward.outputs[3], *last, weights, *given]
            sizes = {"units": (h.dims or ())[1], "size": (x.dims or ())[2], "M": len(given)}
            kernel = self._node(
                "_LSTMSequenceGradient",
                inputs,
                {**self._attributes(layer.cell), **sizes},
                (*(1,) * 10, len(given)),
                f"{forward.name}/gradient",
            )
            if layer.gradient.dx is not None:
                self._stacked[layer.gradient.dx] = kernel.outputs[0]
            totals = layer.dh, layer.dc, layer.weights, layer.bias
            for i, (each, result) in enumerate(zip(totals, kernel.outputs[1:])):
                if each is not None:
                    self._leave(each, result if i < 2 else self._added(each, result))
        self._scatter(loop)
        return kernel

    def _attributes(self, cell: Cell) -> dict[str, Any]:
        return {"gates": cell.order, "forget_bias": cell.forget_bias, "T": cell.x.dtype.base_dtype}

    def _node(
        self,
        op_type: str,
        inputs: list[Any],
        attributes: dict[str, Any],
        sizes: tuple[int, ...] | None = None,
        name: str | None = None,
    ) -> PlanNode:
        inputs = [self._replaced.get(x, x) for x in inputs]
        node = self._subgraph.new_node(registry[op_type], inputs, attributes, self._like, sizes, name)
        node.control_inputs = list(self._waits)
        self._new.append(node)
        return node

    def _constant(self, value: Any, name: str) -> PlanOutput:
        node = self._subgraph.new_constant(value, self._like, name)
        self._new.append(node)
        result: PlanOutput = node.outputs[0]
        return result

    def _leave(self, variable: LoopVariable, result: PlanOutput) -> None:
        if variable.exit is not None:
            self._replaced[variable.exit.outputs[0]] = result

    def _added(self, variable: LoopVariable, result: PlanOutput) -> PlanOutput:
        """The result added to what the variable begins with."""
        first = variable.enter.inputs[0]
        value = first.op.attributes["value"] if first.op.is_constant else None
        if value is not None and not value.any():
            return result
        total: PlanOutput = self._node("AddV2", [first, result], {"T": result.dtype}).outputs[0]
        return total

    def _gather(self, loop: Loop) -> None:
        """Stacks what the loop reads of arrays."""
        for read in loop.nodes:
            if storing(read) == "read":
                handle, flow = entered(read.inputs[0]), entered(read.inputs[2])
                attributes = {"dtype": read.attributes["dtype"], "element_shape": self._dims(read)}
                inputs = [handle, self._places(), flow]
                gather = self._node("TensorArrayGatherV3", inputs, attributes, name=read.name)
                gather.outputs[0].dims = (self._match.steps, *self._dims(read))
                self._stacked[read.outputs[0]] = gather.outputs[0]

    def _dims(self, read: PlanNode) -> Any:
        """The shape of one step of what is read: that of x, or of an output whose gradient it is."""
        x = read.outputs[0]
        if x.dims is not None and None not in x.dims:
            return x.dims
        return next(layer.cell.h.dims for layer in self._match.layers if x in layer.dy)

    def _scatter(self, loop: Loop) -> None:
        """Writes what the loop writes to arrays."""
        variables = {each.value: each for each in loop.variables}
        for write in loop.nodes:
            if storing(write) == "write":
                variable, value = variables[write.inputs[3]], self._match.known[write.inputs[2]]
                flow = variable.enter.inputs[0]
                inputs = [entered(write.inputs[0]), self._places(), self._stacked[value], flow]
                scatter = self._node("TensorArrayScatterV3", inputs, {"T": value.dtype}, name=write.name)
                self._leave(variable, scatter.outputs[0])

    def _places(self) -> PlanOutput:
        return self._constant(np.arange(self._match.steps, dtype=np.int32), "steps")
