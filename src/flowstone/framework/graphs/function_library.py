"""The functions of a graph, each a FunctionDef, and what is made of one: a declaration and a body.

A function's name is an op type: a node of that type is a call of it. `FunctionDeclaration` is that op's
declaration, made from the signature. `FunctionBody` is a graph with the function's nodes, in which a
Placeholder stands for each argument; it is made from the definition alone, on first use, so that functions
made here and functions of an imported GraphDef are one thing. A call has no kernel: a plan replaces it by
the body (`rewriting/functions/function_inlining.py`).

`FunctionLibrary` maps names to definitions. `gradients[name]` is the function that computes another one's
gradient (of the arguments, then the gradients with respect to the results). `built[name]` is a body as the
user's program built it, where a definition does not tell all of it: loops and the shapes of their variables.
A definition never changes once it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowstone.framework import errors
from flowstone.framework.declarations.arguments import Argument
from flowstone.framework.declarations.operation import F, OpDeclaration, registry
from flowstone.framework.types import dtypes

if TYPE_CHECKING:
    from flowstone.framework.graphs.graph import Graph, Operation
    from flowstone.framework.tensors.tensor import Tensor


class FunctionBody:
    """A function as a graph: `inputs` (the arguments' placeholders), `outputs`, and `controls`, operations
    that run although no output needs them. `members`: the operations of the function, where the graph may get
    others. `operations`: those that a call runs, in an order in which they can; None until somebody asks.
    """

    __slots__ = ("controls", "graph", "inputs", "members", "name", "operations", "outputs")

    def __init__(
        self, name: str, graph: Graph, inputs: list[Tensor], outputs: list[Tensor], controls: list[Operation]
    ) -> None:
        self.name, self.graph, self.inputs, self.outputs = name, graph, inputs, outputs
        self.controls, self.members = controls, tuple(graph._operations)
        self.operations: list[Operation] | None = None


class FunctionDeclaration(OpDeclaration):
    """The op whose nodes are calls of a function; results come as one tensor, a tuple, or the operation.

    Its gradient is a SymbolicGradient node, unless the function brings a Python function for it.
    """

    def __init__(self, signature: Any) -> None:
        inputs = ", ".join(_argument_text(argument) for argument in signature.input_arg)
        attributes = [spec.name for spec in signature.attr if spec.type == "type"]
        types: dict[str, Any] = dict.fromkeys(attributes)
        super().__init__(signature.name, f"{inputs} ->", stateful=signature.is_stateful, **types)
        for spec in signature.attr:
            if spec.name not in self.attributes:
                raise ValueError(
                    f"Function {signature.name}: attributes of kind {spec.type} are not understood"
                )
        # Their names need not be Python's, so they cannot go through the named tuple of an op's results.
        self.outputs = [Argument(_argument_text(out), self.attributes) for out in signature.output_arg]
        self.infer_function = lambda node: [None] * len(node.outputs)
        self.gradient_function, self.gradient_kind = call_gradient, "function"

    def result(self, operation: Operation) -> Any:
        """The results of a call."""
        outputs = operation.outputs
        return tuple(outputs) if len(outputs) > 1 else outputs[0] if outputs else operation

    def static_value_inputs(self, node: Any) -> None:
        """Nothing is known of a call's results before a step."""
        return


def _argument_text(argument: Any) -> str:
    kind = argument.type_attr or (dtypes.as_dtype(argument.type).name if argument.type else "")
    if argument.type_list_attr:
        return f"{argument.name}: *{argument.type_list_attr}"
    repeated = f"{argument.number_attr}*" if argument.number_attr else ""
    return f"{argument.name}: {repeated}{kind}"


class FunctionLibrary(dict[str, Any]):
    """A graph's functions: FunctionDef by name; see the module."""

    read_body: Callable[[Any, FunctionLibrary, dict[str, Any]], FunctionBody]  # set by `function_def.py`

    def __init__(self) -> None:
        super().__init__()
        self.gradients: dict[str, str] = {}
        self._declarations: dict[str, OpDeclaration] = {}
        self._bodies: dict[Any, FunctionBody] = {}
        self.built: dict[str, FunctionBody] = {}
        self.frames: dict[str, dict[str, Any]] = {}  # where each node of a function was created, by name

    def add(self, definition: Any) -> None:
        """Adds a definition. ValueError if there is a different one, or an op, of this name."""
        name = definition.signature.name
        known = self.get(name)
        if known is None:
            if name in registry:
                raise ValueError(
                    f"Cannot add function '{name}' because an op with the same name already exists."
                )
            kept = type(definition)()
            kept.CopyFrom(definition)
            self[name] = kept
        elif known != definition:
            raise ValueError(
                f"Cannot add function '{name}' because a different function with the same name already "
                "exists."
            )

    def add_message(self, library: Any) -> None:
        """Adds all of a FunctionDefLibrary. ValueError if something different has one of the names."""
        for definition in library.function:
            self.add(definition)
        for gradient in library.gradient:
            self.set_gradient(gradient.function_name, gradient.gradient_func)

    def set_gradient(self, name: str, gradient: str) -> None:
        """Makes `gradient` the function that computes the gradient of `name`. ValueError if there is
        another.
        """
        if self.gradients.setdefault(name, gradient) != gradient:
            raise ValueError(
                f"Cannot assign gradient function '{gradient}' to '{name}' because it already has gradient "
                f"function '{self.gradients[name]}'"
            )

    def write(self, library: Any) -> None:
        """Adds all functions to a FunctionDefLibrary."""
        library.function.extend(self.values())
        for name, gradient in self.gradients.items():
            library.gradient.add(function_name=name, gradient_func=gradient)

    def declare(self, declaration: OpDeclaration) -> OpDeclaration:
        """Makes the declaration of a function known, whose definition may follow; returns the first one."""
        return self._declarations.setdefault(declaration.name, declaration)

    def declaration(self, name: str) -> OpDeclaration | None:
        """The declaration of a function; None if there is none of this name."""
        found = self._declarations.get(name)
        if found is None and name in self:
            found = self._declarations[name] = FunctionDeclaration(self[name].signature)
        return found

    def body(self, name: str, attributes: dict[str, Any] | None = None) -> FunctionBody:
        """The body of a function; `attributes` of the call decide its types where the signature leaves them
        open.

        NotFoundError if there is none of this name, InvalidArgumentError if its definition is malformed.
        """
        if name in self.built:
            return self.built[name]
        key = name, tuple((attributes or {}).items()) if self.get(name) and self[name].signature.attr else ()
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = self._read(name, attributes or {})
        return found

    def fresh_body(self, name: str) -> FunctionBody:
        """A body to which more may be added: a new one, or the graph that the function was built in."""
        return self.built.get(name) or self._read(name, {})

    def _read(self, name: str, attributes: dict[str, Any]) -> FunctionBody:
        if name not in self:
            raise errors.NotFoundError(None, None, f"Function {name} is not defined.")
        body = FunctionLibrary.read_body(self[name], self, attributes)
        frames = self.frames.get(name, {})
        for operation in body.graph.get_operations():
            operation._frames = frames.get(operation.name, ())
        return body

    def remember(self, key: Any, body: FunctionBody) -> FunctionBody:
        """Keeps a body made elsewhere, such as a function's gradient."""
        self._bodies[key] = body
        return body

    def recall(self, key: Any) -> FunctionBody | None:
        """The body kept under this key, or None."""
        return self._bodies.get(key)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, str]]:
        """What `restore` goes back to."""
        return dict(self), dict(self.gradients)

    def restore(self, snapshot: tuple[dict[str, Any], dict[str, str]]) -> None:
        """Goes back to the definitions of a snapshot."""
        definitions, gradients = snapshot
        added = set(self) - set(definitions)
        for name in added:
            del self[name]
            self._declarations.pop(name, None)
        self.gradients = dict(gradients)
        self._bodies.clear()


# ---- gradients of calls


def call_gradient(op: Operation, *dys: Any) -> list[Any]:
    """The gradient of a call: a SymbolicGradient of its function."""
    return symbolic_gradient(op, op.type, list(op.inputs), list(op.outputs), dys)


def symbolic_gradient(op: Operation, name: str, xs: list[Any], ys: list[Any], dys: Any) -> list[Any]:
    """The gradients for `xs` of function `name` with the results `ys`, None for types that have none."""
    flows = [F.ZerosLike(y) if dy is None else dy for y, dy in zip(ys, dys)]
    types = gradient_types(op, name, xs)
    results = F.SymbolicGradient([*xs, *flows], Tout=types, f=name)
    return [result if has_gradient(dtype) else None for result, dtype in zip(results, types)]


def has_gradient(dtype: dtypes.DType) -> bool:
    """Whether functions give gradients for arguments of this type: numbers that are not whole, and variants,
    which may hold lists of such.
    """
    return dtype.is_floating or dtype.is_complex or dtype is dtypes.variant


def gradient_types(op: Operation, name: str, xs: list[Any]) -> list[Any]:
    """The types of the gradients for `xs`: their own, for a variable's handle that of its values."""
    library = op.graph._functions
    return [
        _values_type(x, library, name, i) if x.dtype is dtypes.resource else x.dtype.base_dtype
        for i, x in enumerate(xs)
    ]


def _values_type(handle: Any, library: FunctionLibrary, name: str, index: int) -> Any:
    """What the variable behind a handle holds: as its node says, or those that read it."""
    dtype = handle.op.attributes.get("dtype")
    if isinstance(dtype, dtypes.DType) and dtype is not dtypes.resource:
        return dtype
    if handle.op.inputs and handle.op.inputs[0].dtype is dtypes.resource:  # Identity, Switch, Enter
        return _values_type(handle.op.inputs[0], library, name, index)
    pending = [library.body(name).inputs[index]] if name in library else []
    while pending:
        argument = pending.pop()
        for consumer in argument._consumers:
            dtype = consumer.attributes.get("dtype")
            if isinstance(dtype, dtypes.DType) and dtype is not dtypes.resource:
                return dtype
            if consumer.type in library:
                body = library.body(consumer.type)
                pending += [x for x, given in zip(body.inputs, consumer.inputs) if given is argument]
    return dtypes.float32


__all__ = [
    "FunctionBody",
    "FunctionDeclaration",
    "FunctionLibrary",
    "call_gradient",
    "gradient_types",
    "has_gradient",
    "symbolic_gradient",
]
