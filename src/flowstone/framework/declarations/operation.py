"""Declarations of operations: everything about an op in one object.

    maximum = op("Maximum", "x: T, y: T -> z: T", T=REAL, commutative=True)
    maximum.infer(broadcast)

    @maximum.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        return torch.maximum

    @maximum.gradient
    def _(op: Operation, dz: Tensor) -> Gradients: ...

The declaration *is* the function that adds the op to the default graph: ``maximum(a, b, name="m")``.

Signature notation: ``x: T`` a tensor whose type attribute T names; ``x: float`` a fixed type; ``x: N*T`` a
list of N tensors; ``x: *Ts`` a list with types Ts; ``x: Ref(T)`` a reference to a variable's buffer; ``x:
T[]`` a tensor that has to be a scalar: a node is not built where it is known to be none, and a step finds out
where it is unknown, so that kernels may rely on it; ``x: T[?]`` one of which only a step finds out. Type
attributes are given as keywords (allowed types, or None for any); all others as text in the notation of
`attributes.py`. Attributes named in the signature that are declared nowhere become ``type`` (or ``int >= 1``
for N, ``list(type) >= 1``).

Parts of a declaration, each set by a method or decorator of the same name (`ShapeFunction`, `KernelFactory` …
are their types):

========  ============================================================================  ==========
part      what it is                                                                    obligatory
========  ============================================================================  ==========
infer     ``f(node)`` -> dims of the output (tuple or None), or a list of dims          yes
kernel    ``f(node, env)`` -> see `kernel.py`; one a device type                        yes
gradient  ``f(op, *dys)`` -> gradients of the inputs; or `not_differentiable()` (None   one of
          flows), or `no_gradient()` (asking is an error)                               the three
fold      ``f(node)`` -> Output (or list) that equals the node's, an array (a constant)    no
value     ``f(node)`` -> what is known before the step, see `node.static_value`         no
number    the arithmetic on Python numbers, for scalars in loops: ``"{0} + {1}"``        no
cost      ``f(node)`` -> floating-point operations of a run; or how many an element      no
sizes     the arithmetic on arrays of sizes, among them unknown ones: `np.multiply`      no
========  ============================================================================  ==========

Traits: `stateful` (has effects or hidden state: never folded, merged, or dropped in favour of another),
`commutative`, `mutates` (inputs that it changes: references and resources), `reads` (resources whose state is
all that makes it stateful: between two changes, equal reads are equal), `keeps` (inputs whose memory the op
holds on to after it has run, in a stack or a queue), `aliases` (inputs whose memory an output may share),
`snapshot` (though the output may share memory, its value is that of the moment when the op runs; without it
an op that `aliases` a reference hands the reference on), `broadcasts` (element-wise over inputs that
broadcast against each other), `overlapping` (an output shows one element of it in several places, so nobody
may overwrite it), `asynchronous`, `host` (names of arguments that live in host memory on every device),
`overwriting` (of several outputs, the index of the one that is left in an overwritten input's buffer; where
nothing is said, any of its shape), `numbers` (names of arguments that kernels also take as Python numbers),
`capturable` (whether a GPU's work for it can be recorded once and repeated without the host: its kernel reads
no value of the device and no state of the host. Pure ops can unless they say False, others only if they say
True).

Traits that say what an op does, which rewriting asks; where nothing is said, nothing is known: `elementwise`
(an element of the output depends on those at its place alone, so that transposes may move past the op),
`moves` (the output's elements are elements of the first argument), `adds` (the output is the sum of all
inputs), `multiplies` (the output is made of sums of products: a "product" of matrices, "contraction",
"convolution" or "depthwise", and of the latter two "convolution gradient" and "depthwise gradient"),
`takes_result` (of a gradient's op, the argument that is the result whose gradient it computes), `shape_only`
(the output depends on the inputs' shapes, not on their elements), `reshapes` (the output has the elements of
the first argument in their order, in another shape), `uniform` (all elements of the output are the same
number: ``f(node)`` gives it, or None where only the step knows it), `reduces` (the first argument is reduced
over the axes that the second gives), `row_wise` (each row of the outputs, along the last axis, depends on
that row of the inputs alone), `images` (which inputs and outputs are images, and which input is a filter: see
`images.py`), `container` (what is done with a stack, an array of tensors or a sum that lives in a step:
"stack", "array" or "sum" makes one, "push", "pop", "write", "read", "close" …; "gradient" looks up the array
of an array's gradients).

Traits that say what a run is worth, which placement, threads and passes ask: `cost` (see the parts; one
operation an element where nothing is said, none for a view), `free` (hands on what is there: a constant, a
variable, a feed), `by_element` (does a little for every element of what it takes and gives, and no more),
`rows` (``f(node)`` -> an output with as many elements as the rows of one table that a run takes or changes,
where it leaves the other rows alone), `holds_state` (its value stays in memory between steps), `starts_team`
(a kernel of it starts a team of threads, however little there is to do).

`role` is what a primitive does, of which passes and the executor know more than a declaration says; '' for
all other ops. In control flow: "switch", "merge", "enter", "exit", "next_iteration", "loop_condition" or
"trigger" (what runs though it waits for dead nodes). Of values: "constant", "feed", "placeholder",
"variable", "read" (the value of a handle), "element_access" (of some elements), "dataset", "element" (what a
dataset, a queue or a function of Python gives), "identity", "gradient_barrier" (the same but for gradients),
"no_op". Between memories: "send", "receive", "host_send", "host_receive" or "swap_out" (moved to the host).

`deprecated` is the version of GraphDefs from which on they cannot have the op, and what they have instead;
`later_names` are those that TensorFlow gave later to arguments of its Python functions.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from flowstone.framework.declarations.arguments import Argument, after_scalars
from flowstone.framework.declarations.attributes import (
    REQUIRED,
    AttributeSpec,
    parse_attributes,
    type_attribute,
)
from flowstone.framework.declarations.building import add_operation
from flowstone.framework.declarations.kernel import CPU, FOLDING, KernelFactory, Value
from flowstone.framework.declarations.registry import Registry, registry
from flowstone.framework.declarations.work import per_element
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims
from flowstone.framework.types.values import to_numpy, to_runtime

if TYPE_CHECKING:
    from flowstone.framework.declarations.images import Images
    from flowstone.framework.graphs.graph_operation import Operation
    from flowstone.framework.tensors.composite import IndexedSlices
    from flowstone.framework.tensors.node import Node, Output
    from flowstone.framework.tensors.tensor import Tensor

Shapes: TypeAlias = "Dims | list[Dims]"  # of the one output, or of each
Gradient: TypeAlias = "Tensor | IndexedSlices"
Gradients: TypeAlias = "Gradient | Sequence[Gradient | None] | None"  # with respect to each input
Equal: TypeAlias = "Output | list[Output] | np.ndarray[Any, Any] | None"  # what a node's outputs equal
Known: TypeAlias = "np.ndarray[Any, Any] | tuple[int | None, ...] | None"  # of an output before the step

ShapeFunction: TypeAlias = "Callable[[Node], Shapes]"
GradientFunction: TypeAlias = "Callable[..., Gradients]"  # of the operation and a gradient an output
FoldFunction: TypeAlias = "Callable[[Node], Equal]"
ValueFunction: TypeAlias = "Callable[[Node], Known | list[Known]]"
CostFunction: TypeAlias = "Callable[[Node], float]"
CONTROL_FLOW = frozenset({"switch", "merge", "enter", "exit", "next_iteration", "loop_condition"})  # roles
_STATIC_VALUE_LIMIT = 4096  # elements: larger values are left to the plan's constant folding


class OpDeclaration:
    """One declared operation; calling it adds a node to the default graph. See the module.

    `is_pure`: whether equal inputs give equal outputs and nothing else happens: gates folding, merging and
    dropping. `is_view`: whether the output usually shares its input's memory.
    """

    # The parts, each set by the method of its name (`infer`, `gradient` …) if the op has it.
    infer_function: ShapeFunction | None = None
    gradient_function: GradientFunction | None = None
    gradient_kind: str = ""  # "function", "not differentiable" or "none"
    fold_function: FoldFunction | None = None
    held_function: Callable[[Node], int] | None = None
    sizes_function: Callable[..., Any] | None = None
    number_text, number_overflows, number_integers_only = "", False, False
    _value_function: ValueFunction | None = None
    _value_inputs: tuple[int, ...] | None = None
    _result_type: Any = None

    def __init__(
        self,
        name: str,
        signature: str,
        attributes: str = "",
        *,
        stateful: bool = False,
        commutative: bool = False,
        mutates: Iterable[int] = (),
        reads: Iterable[int] = (),
        keeps: Iterable[int] = (),
        aliases: Iterable[int] = (),
        overlapping: bool = False,
        snapshot: bool = False,
        broadcasts: bool = False,
        elementwise: bool = False,
        moves: bool = False,
        adds: bool = False,
        multiplies: str = "",
        takes_result: int | None = None,
        shape_only: bool = False,
        reshapes: bool = False,
        uniform: Callable[[Node], Any] | None = None,
        reduces: bool = False,
        row_wise: bool = False,
        images: Images | None = None,
        container: str = "",
        asynchronous: bool = False,
        host: Iterable[str] = (),
        numbers: Iterable[str] = (),
        capturable: bool | None = None,
        cost: CostFunction | float | None = None,
        free: bool = False,
        by_element: bool = False,
        rows: Callable[[Node], Output] | None = None,
        overwriting: int | None = None,
        holds_state: bool = False,
        starts_team: bool = False,
        role: str = "",
        deprecated: tuple[int, str] | None = None,
        later_names: Mapping[str, str] = MappingProxyType({}),
        **types: tuple[DType, ...] | None,
    ) -> None:
        self.name, self.deprecated, self.later_names = name, deprecated, later_names
        self.attributes: dict[str, AttributeSpec] = {spec.name: spec for spec in parse_attributes(attributes)}
        for attribute, allowed in types.items():
            self.attributes[attribute] = type_attribute(attribute, allowed)
        inputs, _, outputs = signature.partition("->")
        self.inputs = [Argument(part, self.attributes) for part in inputs.split(",") if part.strip()]
        self.outputs = [Argument(part, self.attributes) for part in outputs.split(",") if part.strip()]
        self.stateful, self.commutative, self.asynchronous = stateful, commutative, asynchronous
        self.broadcasts, self.reads, self.keeps = broadcasts, frozenset(reads), frozenset(keeps)
        self.mutates, self.aliases, self.overlapping = frozenset(mutates), frozenset(aliases), overlapping
        self.is_pure = not (stateful or self.mutates or asynchronous)
        self.snapshot, self.elementwise, self.moves, self.adds = snapshot, elementwise, moves, adds
        self.takes_result, self.reshapes, self.uniform = takes_result, reshapes, uniform
        self.overwriting, self._capturable = overwriting, capturable
        self.reduces, self.row_wise, self.images = reduces, row_wise, images
        self.multiplies, self.shape_only, self.container = multiplies, shape_only, container
        self.host, self.numbers = frozenset(host), frozenset(numbers)
        self.kernels: dict[str, KernelFactory] = {}
        self.cost_function = per_element(cost) if isinstance(cost, (int, float)) else cost
        self.is_view = bool(self.aliases) and self.is_pure and not broadcasts
        self.by_element = by_element or broadcasts or self.is_view
        self.role, self.in_control_flow = role, role in CONTROL_FLOW
        self.is_free = free or self.in_control_flow
        self.rows_function, self.holds_state, self.starts_team = rows, holds_state, starts_team
        if len(self.outputs) > 1:
            self._result_type = namedtuple(name.lstrip("_"), [output.name for output in self.outputs])  # type: ignore[misc]
        self.scalars = tuple(i for i, argument in enumerate(self.inputs) if argument.is_scalar)
        self.has_lists = any(argument.is_list for argument in self.inputs)
        self.has_references = any(argument.is_ref for argument in self.inputs)
        self.inferred = _inferred_attributes(self.inputs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    # ---- the parts

    def infer(self, function: ShapeFunction) -> ShapeFunction:
        """Sets shape inference: ``f(node)`` gives the dims of the output, or a list of them."""
        self.infer_function = after_scalars(self.inputs, function)
        return function

    def kernel(self, *device_types: str) -> Callable[[KernelFactory], KernelFactory]:
        """Decorator: the kernel factory for these device types."""

        def register(factory: KernelFactory) -> KernelFactory:
            for device_type in device_types:
                self.kernels[device_type] = factory
            return factory

        return register

    def gradient(self, function: GradientFunction) -> GradientFunction:
        """Sets the gradient: ``f(op, *dys)`` gives one gradient (or None) an input."""
        self.gradient_function, self.gradient_kind = function, "function"
        return function

    def not_differentiable(self) -> OpDeclaration:
        """Declares that no gradient flows through this op (its inputs get None)."""
        self.gradient_kind = "not differentiable"
        return self

    def no_gradient(self) -> OpDeclaration:
        """Declares that TensorFlow defines no gradient here: asking for one is a LookupError."""
        self.gradient_kind = "none"
        return self

    def fold(self, function: FoldFunction) -> FoldFunction:
        """Sets the local identity, such as x + 0 = x."""
        self.fold_function = function
        return function

    def cost(self, function: CostFunction) -> CostFunction:
        """Sets the cost: ``f(node)`` gives the floating-point operations of a run, of static shapes."""
        self.cost_function = function
        return function

    def holds(self, function: Callable[[Node], int]) -> OpDeclaration:
        """Says how much a run leaves behind the handle that it makes: ``f(node)`` gives bytes."""
        self.held_function = function
        return self

    def number(self, text: str, overflows: bool = False, integers_only: bool = False) -> OpDeclaration:
        """Sets arithmetic on scalars as Python text over ``{0}``, ``{1}`` … (`runtime/code/numbers.py`).

        `overflows`: the result may be larger than its type, or need rounding. `integers_only`: it is not what
        floating point does.
        """
        self.number_text, self.number_overflows = f"({text})", overflows
        self.number_integers_only = integers_only
        return self

    def sizes(self, function: Callable[..., Any]) -> OpDeclaration:
        """Sets the arithmetic on the inputs, arrays of sizes, ints or symbols for unknown ones."""
        self.sizes_function = function
        return self

    def value(self, *needs: int) -> Callable[[ValueFunction], ValueFunction]:
        """Decorator: what is known of the output (a list: of each output) before a step.

        `needs`: inputs whose static values it asks.
        """

        def register(function: ValueFunction) -> ValueFunction:
            self._value_function, self._value_inputs = function, needs
            return function

        return register

    def check_complete(self) -> None:
        """Raises TypeError if an obligatory part is missing."""
        parts = {"infer": self.infer_function, "kernel": self.kernels, "gradient": self.gradient_kind}
        missing = [part for part, value in parts.items() if not value]
        if missing:
            raise TypeError(f"the declaration of op {self.name} lacks: {', '.join(missing)}")

    # ---- questions

    def why_removed(self, producer: int) -> str:
        """Why graphs of this version cannot have the op; '' if they can."""
        if self.deprecated is None or producer < self.deprecated[0]:
            return ""
        version, instead = self.deprecated
        return (
            f"Op {self.name} is not available in GraphDef version {producer}. It has been removed in version "
            f"{version}. Use {instead} instead."
        )

    @property
    def is_capturable(self) -> bool:
        """Whether a recording of its device work may stand for it: no decision of the host's is in it."""
        return self.is_pure if self._capturable is None else self._capturable

    def static_value(self, node: Node, index: int) -> Known:
        """What is known of output `index` of `node` before a step (None: nothing); see
        `node.static_value`.
        """
        if self._value_function is not None:
            value = self._value_function(node)
            return value[index] if isinstance(value, list) else value
        inputs = [x._static_value for x in node.inputs]
        if not all(isinstance(value, np.ndarray) for value in inputs):
            return None
        try:
            result = evaluate(node, inputs)
        except Exception:  # the step will say what is wrong, with the node's name
            return None
        return to_numpy(result[index], node.outputs[index].dtype)

    def static_value_inputs(self, node: Node) -> Sequence[Output] | None:
        """The inputs whose static values are needed for the static value of `node`; None if it has none."""
        if self._value_function is not None:
            return [node.inputs[i] for i in self._value_inputs or () if i < len(node.inputs)]
        if not self.is_pure or not node.inputs or len(node.inputs) > 64:
            return None
        for output in node.outputs:
            shape = output.static_shape
            if shape is None or math.prod(shape) > _STATIC_VALUE_LIMIT:
                return None
        return node.inputs

    # ---- building

    def __call__(self, *arguments: Any, name: str | None = None, **keywords: Any) -> Tensor:
        """Adds a node to the default graph.

        Inputs are positional (in the declaration's order) or by name; attributes by name. Values that are not
        tensors are converted. Returns the output, a list (``N*T``, ``*Ts``), a named tuple of several
        outputs, or the `Operation` where there are none; for the type checker it is the one output that most
        ops have, see `several` and `operation`. Raises TypeError or ValueError, naming the op and the
        argument.
        """
        return self.result(add_operation(self, arguments, keywords, name))  # type: ignore[no-any-return]

    def several(self, *arguments: Any, **keywords: Any) -> Any:
        """The same call, of an op whose result is a list or a named tuple."""
        return self(*arguments, **keywords)

    def operation(self, *arguments: Any, **keywords: Any) -> Operation:
        """The same call, of an op without outputs, whose result is the node."""
        return self(*arguments, **keywords)  # type: ignore[return-value]

    def result(self, operation: Operation) -> Any:
        """The outputs of a node of this op in the form that the building function returns."""
        outputs, declared = operation.outputs, self.outputs
        if len(declared) == 1:
            return list(outputs) if declared[0].is_list else outputs[0]
        if not declared:
            return operation
        parts: list[Any] = []
        at = 0
        for argument in declared:
            if argument.is_list:
                size = len(argument.types(operation.attributes))
                parts.append(list(outputs[at : at + size]))
                at += size
            else:
                parts.append(outputs[at])
                at += 1
        return self._result_type(*parts)


def _inferred_attributes(inputs: list[Argument]) -> frozenset[str]:
    names: set[str] = set()
    for argument in inputs:
        names.update(x for x in (argument.type_attr, argument.number_attr, argument.type_list_attr) if x)
    return frozenset(names)


def evaluate(node: Node, inputs: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Runs the CPU kernel of a pure node on NumPy values, outside any step; returns its outputs as runtime
    values.
    """
    with torch.inference_mode():
        kernel = node.declaration.kernels[CPU](node, FOLDING)
        if isinstance(kernel, Value):
            return [kernel.value]
        assert callable(kernel)  # of a pure node
        result = kernel(*[to_runtime(value, node.dtype(i)) for i, value in enumerate(inputs)])
    return list(result) if isinstance(result, (list, tuple)) else [result]


class Functions:
    """Declared operations as attributes: ``F.Mul(x, y)`` adds a Mul node, whichever file declares it.

    A gradient uses operations of other families this way, without importing their files. AttributeError for a
    name that is not declared.
    """

    def __getattr__(self, name: str) -> OpDeclaration:
        declaration = registry.get(name)
        if declaration is None:
            raise AttributeError(f"no op {name} is declared")
        self.__dict__[name] = declaration
        return declaration


F = Functions()


def op(name: str, signature: str, attributes: str = "", **traits: Any) -> OpDeclaration:
    """Declares an operation and registers it; see the module."""
    return registry.add(OpDeclaration(name, signature, attributes, **traits))


__all__ = [
    "REQUIRED",
    "F",
    "Functions",
    "OpDeclaration",
    "Registry",
    "evaluate",
    "op",
    "registry",
]
