"""Calls of functions, replaced in a plan by the functions' nodes (white paper 10).

`inline_functions` walks the subgraph once. A call node (`FunctionDeclaration`, PartitionedCall, ...) is
replaced by copies of the nodes of the function's body, named ``call/node``, the functional forms of control
flow (`functional_lowering.py`) by Switch, Merge and loop primitives around such copies. Calls inside bodies
are replaced on the way, to any depth; a function that calls itself is an InvalidArgumentError.

What waits for a call waits for the effects in its body, and its body for what the call waits for. A call that
is dead, on a branch not taken, leaves its whole body dead: nodes of the body are *bound* to where the call
stands by an input, a control input, or what they depend on; effects and results that are not get an edge from
the call's `Site`.

A gradient (SymbolicGradient) recomputes the function that it differentiates, except where the plan has a call
of it on the same values: it takes the nodes of that call, random numbers included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.function_library import FunctionBody, FunctionDeclaration
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph, requested_device
from flowstone.framework.tensors.node import UNKNOWN
from flowstone.framework.types.shape import merge
from flowstone.ops.control.functional_forms import FUNCTIONAL_FORMS
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES
from flowstone.rewriting.analyses.frames import ENTERS, EXITS, NEXT_ITERATIONS, is_head, is_loop_switch
from flowstone.rewriting.functions.call_sites import Expansion, Site, fail
from flowstone.rewriting.functions.function_gradients import gradient_body
from flowstone.rewriting.functions.functional_lowering import LOWERINGS, check_results
from flowstone.rewriting.simplification.partial_execution import _in_order


def inline_functions(subgraph: Subgraph) -> None:
    """Replaces all calls; nodes are numbered anew, in the order in which they stand."""
    if any([is_call(node) for node in subgraph.nodes]):
        Inliner(subgraph).run()


def is_call(node: Any) -> bool:
    """Whether functions take this node's place."""
    declaration = node.declaration
    return declaration.name in FUNCTIONAL_FORMS or type(declaration) is FunctionDeclaration


class Inliner:
    """One pass over a subgraph; `nodes` are those of the result so far, `bound` see the module.

    `switches`: by (value, predicate) the Switch that a conditional made for it, for others on the same
    predicate. `computed`: by function and inputs the copies of a call's nodes, by name in the body.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph = subgraph
        self.nodes: list[PlanNode] = []
        self.bound: set[PlanNode] = set()
        self.switches: dict[tuple[PlanOutput, PlanOutput], PlanNode] = {}
        self.computed: dict[Any, dict[str, _Copied]] = {}
        self.conditional = any(node.type in SWITCHES for node in subgraph.nodes)

    def run(self) -> None:
        """Expands every call of the subgraph."""
        subgraph = self.subgraph
        waited = {control for node in subgraph.nodes for control in node.control_inputs}
        waited.update(subgraph.targets)
        replaced: dict[PlanOutput, PlanOutput] = {}
        replacements: dict[PlanNode, list[PlanNode]] = {}
        for node in subgraph.nodes:
            node.inputs[:] = [replaced.get(x, x) for x in node.inputs]
            if replacements and node.control_inputs:
                node.control_inputs = _substituted(node.control_inputs, replacements)
            if not is_call(node):
                self.nodes.append(node)
                continue
            expansion = self.expand(node, (), node.origin.graph._functions, self._pivot(node))
            replaced.update(zip(node.outputs, expansion.outputs))
            if node in waited:
                replacements[node] = [self.done(node, expansion)]
            subgraph.log.append(("inline_functions", node.name, f"the nodes of {node.type}"))
        for node in self.nodes:
            if node.type in MERGES:  # what a loop's head takes from the iteration before comes after it
                node.inputs[:] = [replaced.get(x, x) for x in node.inputs]
        subgraph.nodes = self.nodes
        subgraph.fetches = [replaced.get(x, x) for x in subgraph.fetches]
        subgraph.targets = _substituted(subgraph.targets, replacements)
        for i, node in enumerate(self.nodes):
            node.order = i

    def _pivot(self, call: PlanNode) -> PlanNode | None:
        """A node that is alive where a call of the user's graph is."""
        return self.alive_with_inputs(call) if self.conditional else None

    # ---- nodes

    def add(
        self,
        op_type: str,
        inputs: Sequence[PlanOutput],
        like: PlanNode,
        name: str,
        controls: Sequence[PlanNode] = (),
        **attributes: Any,
    ) -> PlanNode:
        """A new node at the end, bound to where it stands."""
        declaration = registry[op_type]
        sizes = (len(inputs),) if declaration.has_lists else None
        for key, spec in declaration.attributes.items():
            attributes.setdefault(key, spec.default)
        node = self.subgraph.new_node(declaration, list(inputs), attributes, like, sizes, name)
        node.control_inputs = list(controls)
        self.bound.add(node)
        self.nodes.append(node)
        return node

    def identity(
        self, x: PlanOutput, like: PlanNode, name: str, controls: Sequence[PlanNode] = ()
    ) -> PlanNode:
        """The same value, where `controls` are alive."""
        return self.add("Identity", [x], like, name, controls, T=x.dtype.base_dtype)

    def alive_with(self, x: PlanOutput, like: PlanNode) -> PlanNode:
        """A node that is alive where `x` is."""
        if x.op.type not in SWITCHES:
            return x.op
        return self.identity(x, like, f"{like.name}/pivot")

    def alive_with_inputs(self, call: PlanNode) -> PlanNode | None:
        """A node that is alive where all inputs of a call are; None if it has none."""
        sources = dict.fromkeys(call.inputs)
        alive = [self.alive_with(x, call) for x in sources]
        if len(alive) < 2:
            return alive[0] if alive else None
        return self.identity(call.inputs[0], call, f"{call.name}/pivot", alive[1:])

    def done(self, call: PlanNode, expansion: Expansion) -> PlanNode:
        """A node that runs when all of a call has."""
        waits = dict.fromkeys(expansion.effects)
        for x in expansion.outputs:
            waits.setdefault(self.alive_with(x, call))
        for control in call.control_inputs:
            waits.setdefault(control)
        return self.add("NoOp", [], call, call.name, list(waits))

    # ---- calls

    def expand(
        self, node: PlanNode, callers: tuple[str, ...], library: Any, pivot: PlanNode | None
    ) -> Expansion:
        """Puts what a call stands for at the end of `nodes`."""
        site = Site(node, library, callers, pivot)
        lowering = LOWERINGS.get(node.type)
        if lowering is not None:
            expansion: Expansion = lowering(self, node, site)
        elif node.type == "SymbolicGradient":
            types = node.attributes["Tout"]
            name = node.attributes["f"]
            body = self.located(lambda: gradient_body(library, name, types), node)
            forward = None if name in library.gradients or name in library.built else name
            expansion = self.insert(body, list(node.inputs), site, forward)
        elif node.type in FUNCTIONAL_FORMS:
            given = node.group(len(node.declaration.inputs) - 1)
            expansion = self.call(node.attributes["f"], given, site)
        else:
            expansion = self.call(node.type, list(node.inputs), site, node.attributes)
        check_results(node, expansion.outputs)
        return expansion

    def call(
        self, name: str, inputs: Sequence[PlanOutput], site: Site, attributes: dict[str, Any] | None = None
    ) -> Expansion:
        """Puts the nodes of a function at the end of `nodes`."""
        body = self.located(lambda: site.library.body(name, attributes), site.call)
        return self.insert(body, inputs, site)

    def located(self, read: Callable[[], FunctionBody], node: PlanNode) -> FunctionBody:
        """A function's body; an error names the call."""
        try:
            return read()
        except (errors.NotFoundError, errors.InvalidArgumentError) as error:
            text = f"{error.message}\n\t [[node {node.name} (op {node.type})]]"
            raise type(error)(lambda: node.origin.node_def, node.origin, text) from error

    def insert(
        self, body: FunctionBody, inputs: Sequence[PlanOutput], site: Site, forward: str | None = None
    ) -> Expansion:
        """Copies a body; `forward`: the function whose call, if the plan has one, lends its nodes."""
        _check_call(body, inputs, site)
        key = tuple(inputs)
        lent = {} if forward is None else self.computed.get((forward, key[: _argument_count(forward, site)]))
        copies = _BodyCopy(self, body, site, lent or {})
        expansion = copies.write(inputs)
        if forward is None and inputs:
            self.computed[body.name, key] = copies.by_name
        return expansion


def _argument_count(name: str, site: Site) -> int:
    definition = site.library.get(name)
    return 0 if definition is None else len(definition.signature.input_arg)


class _Copied:
    """The copy of one operation of a body: its `outputs`, and what to wait for instead of it."""

    __slots__ = ("outputs", "waits")

    def __init__(self, outputs: list[PlanOutput], waits: list[PlanNode]) -> None:
        self.outputs, self.waits = outputs, waits


class _BodyCopy:
    """The copying of one body. `values` gives the copy of each tensor, `by_name` that of each operation."""

    def __init__(self, inliner: Inliner, body: FunctionBody, site: Site, lent: dict[str, _Copied]) -> None:
        self.inliner, self.body, self.site, self.lent = inliner, body, site, lent
        self.values: dict[Any, PlanOutput] = {}
        self.by_name: dict[str, _Copied] = {}
        self.depths = _Depths(body)
        self.heads: list[tuple[PlanNode, Any]] = []
        self.given: set[PlanOutput] = set()

    def write(self, inputs: Sequence[PlanOutput]) -> Expansion:
        """Copies all operations after the arguments."""
        body = self.body
        self.values.update(zip(body.inputs, inputs))
        self.given = set(inputs)
        arguments = {x.op for x in body.inputs}
        operations = _operations(body)
        waited = {control for op in operations for control in op.control_inputs}
        waited.update(body.controls)
        effects: list[PlanNode] = []
        for op in operations:
            if op in arguments:
                self.by_name[op.name] = _Copied([self.values[op.outputs[0]]], [])
                continue
            copied = self.lent.get(op.name)
            if copied is None:
                copied = self._copy(op, op in waited)
            self.by_name[op.name] = copied
            self.values.update(zip(op.outputs, copied.outputs))
            if self.depths.is_effect(op):
                effects += copied.waits
        for node, op in self.heads:
            node.inputs[:] = [self.values[x] for x in op.inputs]
        for op in body.controls:
            effects += self.by_name[op.name].waits
        outputs = [self._bound_output(self.values[x], i) for i, x in enumerate(body.outputs)]
        return Expansion(outputs, list(dict.fromkeys(effects)))

    def _copy(self, op: Any, waited: bool) -> _Copied:
        inliner, site = self.inliner, self.site
        inputs = [self.values.get(x, UNKNOWN) for x in op.inputs]
        awaited = [self.by_name.get(control.name) for control in op.control_inputs]
        controls = [wait for copied in awaited if copied is not None for wait in copied.waits]
        node = PlanNode(
            op.declaration,
            f"{site.prefix}/{op.name}",
            inputs,
            self._attributes(op),
            op.group_sizes,
            controls,
            requested_device(op) or site.call.device,
            site.call.order,
        )
        node.origin = site.call.origin
        for x in op.outputs:
            node.outputs.append(PlanOutput(node, x.value_index, x.dtype, x.dims))
        if UNKNOWN in inputs:
            self.heads.append((node, op))
        self._bind(op, node)
        if is_call(node):
            _infer(node)
            pivot = self._pivot_of(node) if self.depths.exist or node in inliner.bound else site.pivot
            expansion = inliner.expand(node, (*site.callers, self.body.name), site.library, pivot)
            waits = expansion.effects
            if waited:
                waits = [inliner.done(node, expansion)]
            return _Copied(expansion.outputs, waits)
        if UNKNOWN not in inputs:
            _infer(node)
        inliner.nodes.append(node)
        return _Copied(node.outputs, [node])

    def _pivot_of(self, node: PlanNode) -> PlanNode | None:
        """A node that is alive where a call in the body is; None if the body always runs, as a whole."""
        if self.site.pivot is None and not self.depths.exist:
            return None
        return self.inliner.alive_with_inputs(node) or self.site.pivot

    def _attributes(self, op: Any) -> dict[str, Any]:
        attributes: dict[str, Any] = op.attributes
        prefix = self.site.prefix
        if "_class" in attributes:
            classes = tuple(_prefixed(text, prefix, self.body) for text in attributes["_class"])
            attributes = {**attributes, "_class": tuple(text for text in classes if text)}
        if op.type in ENTERS:
            attributes = {**attributes, "frame_name": f"{prefix}/{attributes['frame_name']}"}
        return attributes

    def _bind(self, op: Any, node: PlanNode) -> None:
        """Ties a node to where the call stands, unless what it depends on does."""
        bound, site = self.inliner.bound, self.site
        if site.pivot is None and not site.controls:
            return
        inner = [x.op for x in node.inputs if x is not UNKNOWN and x not in self.given]
        if any([source in bound for source in (*inner, *node.control_inputs)]):
            bound.add(node)
            return
        takes_argument = any(x in self.depths.arguments for x in op.inputs)
        if takes_argument or not op.declaration.is_pure or op.type in ENTERS:
            begins_loop = op.type in ENTERS  # all of a frame is alive where the call is, or none
            binding = site.controls if takes_argument and not begins_loop else site.binding()
            node.control_inputs = list(dict.fromkeys([*node.control_inputs, *binding]))
            bound.add(node)

    def _bound_output(self, x: PlanOutput, index: int) -> PlanOutput:
        """A result that is dead where the call is."""
        site = self.site
        binding = site.binding()
        is_tied = x.op in self.inliner.bound or (x in self.given and not site.controls)
        if not binding or is_tied or not (site.pivot is not None or self.inliner.conditional):
            return x
        name = f"{site.prefix}/result_{index}"
        return self.inliner.identity(x, site.call, name, binding).outputs[0]


class _Depths:
    """How many conditionals and loops of the body itself each operation lies in, so that one outside waits
    for none that may be dead. `exist`: there are any.
    """

    def __init__(self, body: FunctionBody) -> None:
        self.arguments = set(body.inputs)
        operations = _operations(body)
        self.exist = any(op.type in SWITCHES or op.type in ENTERS for op in operations)
        self._of: dict[Any, int] = {}
        self._hidden_effects = False
        if self.exist:
            for op in operations:
                self._of[op] = self._depth(op)
                self._hidden_effects |= self._of[op] > 0 and not op.declaration.is_pure

    def _depth(self, op: Any) -> int:
        sources = [x.op for x in op.inputs if x.op.type not in NEXT_ITERATIONS] + op.control_inputs
        depth = max((self._of.get(source, 0) for source in sources), default=0)
        if op.type in ENTERS or (op.type in SWITCHES and not is_loop_switch(op)):
            return depth + 1
        if op.type in EXITS or (op.type in MERGES and not is_head(op)):
            return max(depth - 1, 0)
        return depth

    def is_effect(self, op: Any) -> bool:
        """Whether who waits for the call must wait for this operation."""
        if not self.exist:
            return not op.declaration.is_pure
        if self._of[op]:
            return False
        return not op.declaration.is_pure or (self._hidden_effects and op.type in (*MERGES, *EXITS))


# ---- checks and small things


def _check_call(body: FunctionBody, inputs: Sequence[PlanOutput], site: Site) -> None:
    call = site.call
    if body.name in site.callers:
        chain = " -> ".join([*site.callers[site.callers.index(body.name) :], body.name])
        fail(call, f"Recursive function call: {chain}")
    if len(inputs) != len(body.inputs):
        fail(call, f"Function {body.name} takes {len(body.inputs)} arguments, but got {len(inputs)}")
    for i, (x, argument) in enumerate(zip(inputs, body.inputs)):
        if x.dtype.base_dtype is not argument.dtype.base_dtype:
            fail(
                call,
                f"Argument {i} of function {body.name} has type {x.dtype.base_dtype.name}, expected "
                f"{argument.dtype.base_dtype.name}",
            )


def _operations(body: FunctionBody) -> list[Any]:
    if body.operations is None:
        body.operations = _in_order(set(body.members), set())
    return body.operations


def _infer(node: PlanNode) -> None:
    """Infers the shapes of a copy again: its arguments' are known now."""
    infer = node.declaration.infer_function
    if infer is None or not node.outputs:
        return
    try:
        dims = infer(node)
        for output, found in zip(node.outputs, dims if isinstance(dims, list) else [dims]):
            output.dims = merge(output.dims, found)
    except ValueError:  # the step will say what is wrong
        return


def _prefixed(text: str, prefix: str, body: FunctionBody) -> str:
    """A colocation class of the body in the plan; '' if what it names is not there."""
    if not text.startswith("loc:@"):
        return text
    return f"loc:@{prefix}/{text[5:]}" if text[5:] in body.graph._by_name else ""


def _substituted(nodes: list[PlanNode], replacements: dict[PlanNode, list[PlanNode]]) -> list[PlanNode]:
    found: dict[PlanNode, None] = {}
    for node in nodes:
        for replacement in replacements.get(node, (node,)):
            found[replacement] = None
    return list(found)
