"""Adding a node: arguments to tensors, attributes inferred and checked.

`add_operation` is what calling a declaration does. Inputs are taken in order; the first tensor that a type
attribute meets decides it, and Python values that follow are converted to that type, as TensorFlow 1 does.
Constants made on the way go into a name scope of the node's name (``add/y``).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from flowstone.framework.declarations.attributes import REQUIRED
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes

if TYPE_CHECKING:
    from flowstone.framework.declarations.arguments import Argument
    from flowstone.framework.declarations.operation import OpDeclaration
    from flowstone.framework.graphs.graph import Graph, Operation


def add_operation(
    declaration: OpDeclaration, arguments: tuple[Any, ...], keywords: dict[str, Any], name: str | None
) -> Operation:
    """Adds a node of `declaration` to the default graph (or that of its inputs); see
    `OpDeclaration.__call__`.
    """
    values = _match_inputs(declaration, arguments, keywords)
    graph = graph_of(values)
    if declaration.deprecated is not None and (removed := declaration.why_removed(graph.producer)):
        raise NotImplementedError(removed)
    if all([isinstance(value, Tensor) for value in values]) and not declaration.has_lists:
        return _add(declaration, graph, values, keywords, name or declaration.name)
    with scope.graphs.entered(graph), graph.name_scope(name or declaration.name) as full_name:
        return _add(declaration, graph, values, keywords, full_name)


def _match_inputs(
    declaration: OpDeclaration, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> list[Any]:
    declared = declaration.inputs
    if len(arguments) == len(declared):
        return list(arguments)
    if len(arguments) > len(declared):
        raise TypeError(f"{declaration.name}() takes {len(declared)} inputs but {len(arguments)} were given")
    values = list(arguments)
    for argument in declared[len(arguments) :]:
        if argument.name not in keywords:
            raise TypeError(f"No argument for input '{argument.name}' of op {declaration.name}")
        values.append(keywords.pop(argument.name))
    return values


def add_by_type(
    graph: Graph,
    declaration: OpDeclaration,
    inputs: list[Any],
    attributes: dict[str, Any],
    name: str,
) -> Operation:
    """Adds a node of `declaration` whose inputs are a flat list of tensors, as a NodeDef has them.

    Raises TypeError for an input that is no tensor, or where they are not as many as the attributes say.
    """
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise TypeError(f"Input #{i} is not a tensor: {x}")
    values, rest = list[Any](), list(inputs)
    for argument in declaration.inputs:
        if not argument.is_list:
            values += rest[:1]
            del rest[:1]
            continue
        size = attributes.get(argument.number_attr or "")
        if argument.type_list_attr is not None and argument.type_list_attr in attributes:
            size = len(attributes[argument.type_list_attr])
        if size is None:  # the rest, but for the single ones that follow
            following = declaration.inputs[declaration.inputs.index(argument) + 1 :]
            size = len(rest) - len(following)
        values.append(rest[:size])
        del rest[:size]
    if len(values) != len(declaration.inputs) or rest:
        raise TypeError(f"{declaration.name} does not take {len(inputs)} inputs with these attributes")
    return _add(declaration, graph, values, attributes, name)


def operand(value: Any, dtype: dtypes.DType, name: str) -> Tensor:
    """`value` as a tensor: of `dtype`, unless it has a type of its own, which the operation then judges."""
    has_type = isinstance(getattr(value, "dtype", None), dtypes.DType)
    return convert_to_tensor(value, None if has_type else dtype, name)


def place_of(tensor: Any) -> Graph:
    """Where an operation on `tensor` goes: to its graph, or to the function that is being built."""
    stack = scope.graphs.items
    return stack[-1] if stack and stack[-1].building_function else tensor.graph  # type: ignore[no-any-return]


def graph_of(values: list[Any]) -> Graph:
    """The graph of the inputs, whichever is the default one; that one if they have none. ValueError if they
    disagree."""
    stack = scope.graphs.items
    graph: Graph | None = stack[-1] if stack else None
    if graph is not None and graph.building_function:
        return graph  # what is from outside will be captured
    found: Graph | None = None
    for value in values:
        owner: Graph | None
        if type(value) is Tensor:
            owner = value.op.graph
        elif type(value) in (list, tuple):
            owner = next((item.graph for item in value if getattr(item, "graph", None) is not None), None)
        else:
            owner = getattr(value, "graph", None)
        if owner is None or owner is found:
            continue
        if found is not None:
            raise ValueError(f"{value!r} must be from the same graph as {values[0]!r}.")
        found = owner
    return found or graph or scope.get_default_graph()


def _add(
    declaration: OpDeclaration, graph: Graph, values: list[Any], keywords: dict[str, Any], name: str
) -> Operation:
    attributes = _explicit_attributes(declaration, keywords)
    inputs: list[Tensor] = []
    sizes: list[int] = []
    for argument, value in zip(declaration.inputs, values):
        if argument.is_list:
            tensors = _convert_list(declaration, argument, value, attributes)
            inputs += tensors
            sizes.append(len(tensors))
        else:
            inputs.append(_convert(declaration, argument, value, attributes))
            sizes.append(1)
    _complete_attributes(declaration, attributes)
    if declaration.has_references:
        with contextlib.ExitStack() as stack:  # what changes a buffer runs where the buffer is
            for owner in _references(declaration, inputs, sizes):
                stack.enter_context(graph.colocate_with(owner))
            return graph.create(declaration, inputs, attributes, tuple(sizes), name)
    return graph.create(declaration, inputs, attributes, tuple(sizes), name)


def _references(declaration: OpDeclaration, inputs: list[Tensor], sizes: list[int]) -> list[Operation]:
    """The operations that make the inputs taken by reference."""
    owners, at = [], 0
    for argument, size in zip(declaration.inputs, sizes):
        if argument.is_ref:
            owners += [tensor.op for tensor in inputs[at : at + size]]
        at += size
    return owners


def _explicit_attributes(declaration: OpDeclaration, keywords: dict[str, Any]) -> dict[str, Any]:
    attributes = {}
    for key, value in keywords.items():
        spec = declaration.attributes.get(key)
        if spec is None:
            raise TypeError(f"{declaration.name}() got an unexpected keyword argument '{key}'")
        if value is not None or spec.kind == "shape":
            attributes[key] = spec.canonical(value, declaration.name)
    return attributes


def _complete_attributes(declaration: OpDeclaration, attributes: dict[str, Any]) -> None:
    for key, spec in declaration.attributes.items():
        if key not in attributes:
            if spec.default is REQUIRED:
                raise TypeError(f"No argument for attr '{key}' of op {declaration.name}")
            attributes[key] = spec.default


def _convert(
    declaration: OpDeclaration, argument: Argument, value: Any, attributes: dict[str, Any]
) -> Tensor:
    attribute = argument.type_attr
    wanted = argument.dtype if attribute is None else attributes.get(attribute)
    if isinstance(value, Tensor):
        tensor = value
    else:
        tensor = _to_tensor(declaration, argument, value, wanted)
    dtype = tensor.dtype.base_dtype
    if argument.is_ref and not tensor.dtype.is_ref:
        raise TypeError(
            f"'{declaration.name}' Op requires that input '{argument.name}' be a mutable tensor (e.g.: a "
            "tf.Variable)"
        )
    if wanted is None:
        attributes[attribute] = declaration.attributes[attribute].canonical(dtype, declaration.name)  # type: ignore[index]
    elif dtype is not wanted:
        raise _type_mismatch(declaration, argument, dtype, wanted)
    return tensor


def _to_tensor(declaration: OpDeclaration, argument: Argument, value: Any, wanted: Any) -> Tensor:
    preferred = None
    if wanted is None and argument.type_attr is not None:
        default = declaration.attributes[argument.type_attr].default
        preferred = None if default is REQUIRED else default
    try:
        return convert_to_tensor(value, wanted, argument.name, preferred, argument.is_ref)
    except TypeError as error:
        if wanted is None:
            raise
        raise TypeError(
            f"Expected {wanted.name} passed to parameter '{argument.name}' of op '{declaration.name}', got "
            f"{value!r} of type '{type(value).__name__}' instead. Error: {error}"
        ) from None
    except ValueError:
        if wanted is None:
            raise
        try:
            actual = convert_to_tensor(value, as_ref=argument.is_ref).dtype.base_dtype
        except (TypeError, ValueError):
            actual = None
        if actual is None or actual is wanted:
            raise
        raise _type_mismatch(declaration, argument, actual, wanted) from None


def _type_mismatch(declaration: OpDeclaration, argument: Argument, dtype: Any, wanted: Any) -> TypeError:
    where = f"Input '{argument.name}' of '{declaration.name}' Op has type {dtype.name} that does not match"
    if argument.dtype is not None:
        return TypeError(f"{where} expected type of {wanted.name}.")
    other = next((a.name for a in declaration.inputs if a.type_attr == argument.type_attr), argument.name)
    if other == argument.name:
        return TypeError(f"{where} attribute '{argument.type_attr}', which is {wanted.name}.")
    return TypeError(f"{where} type {wanted.name} of argument '{other}'.")


def _convert_list(
    declaration: OpDeclaration, argument: Argument, value: Any, attributes: dict[str, Any]
) -> list[Tensor]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"Expected list for '{argument.name}' argument to '{declaration.name}' Op, not {value!r}."
        )
    if argument.type_list_attr is not None:
        return _convert_types_list(declaration, argument, value, attributes)
    wanted = argument.dtype if argument.type_attr is None else attributes.get(argument.type_attr)
    if wanted is None:
        known = next(
            (item.dtype for item in value if isinstance(getattr(item, "dtype", None), dtypes.DType)), None
        )
        wanted = known.base_dtype if known is not None else None
    tensors = []
    for i, item in enumerate(value):
        try:
            tensor = (
                item
                if isinstance(item, Tensor)
                else convert_to_tensor(item, wanted, f"{argument.name}_{i}", as_ref=argument.is_ref)
            )
        except (TypeError, ValueError):
            raise _types_differ(declaration, argument, value, wanted) from None
        if wanted is None:
            wanted = tensor.dtype.base_dtype
        if tensor.dtype.base_dtype is not wanted:
            raise _types_differ(declaration, argument, value, wanted)
        if argument.is_ref and not tensor.dtype.is_ref:
            raise TypeError(
                f"'{declaration.name}' Op requires that input '{argument.name}' be a mutable tensor (e.g.: a "
                "tf.Variable)"
            )
        tensors.append(tensor)
    _note_length(declaration, argument, len(tensors), attributes)
    if argument.type_attr is not None and wanted is not None:
        spec = declaration.attributes[argument.type_attr]
        attributes[argument.type_attr] = spec.canonical(wanted, declaration.name)
    return tensors


def _types_differ(declaration: OpDeclaration, argument: Argument, values: Any, wanted: Any) -> TypeError:
    types = ", ".join([_type_name(x) for x in values])
    expected = "" if wanted is None else f": expected {wanted.name}"
    return TypeError(
        f"Tensors in list passed to '{argument.name}' of '{declaration.name}' Op have types [{types}] that "
        f"don't all match{expected}."
    )


def _type_name(value: Any) -> str:
    try:
        return convert_to_tensor(value).dtype.base_dtype.name
    except (TypeError, ValueError):
        return "<NOT CONVERTIBLE TO TENSOR>"


def _note_length(
    declaration: OpDeclaration, argument: Argument, size: int, attributes: dict[str, Any]
) -> None:
    number = argument.number_attr or ""
    spec = declaration.attributes[number]
    if spec.minimum is not None and size < spec.minimum:
        raise ValueError(
            f"List argument '{argument.name}' to '{declaration.name}' Op with length {size} shorter than "
            "minimum "
            f"length {spec.minimum}."
        )
    if attributes.setdefault(number, size) != size:
        raise ValueError(
            f"List argument '{argument.name}' to '{declaration.name}' Op with length {size} must match "
            f"length {attributes[number]} of the other list argument."
        )


def _convert_types_list(
    declaration: OpDeclaration, argument: Argument, values: Any, attributes: dict[str, Any]
) -> list[Tensor]:
    key = argument.type_list_attr or ""
    wanted = attributes.get(key) or (None,) * len(values)
    if len(wanted) != len(values):
        raise ValueError(
            f"List argument '{argument.name}' to '{declaration.name}' Op has {len(values)} values but "
            "attribute "
            f"'{key}' has {len(wanted)} types."
        )
    tensors = [
        convert_to_tensor(value, dtype, f"{argument.name}_{i}")
        for i, (value, dtype) in enumerate(zip(values, wanted))
    ]
    types = tuple([tensor.dtype.base_dtype for tensor in tensors])
    attributes[key] = declaration.attributes[key].canonical(types, declaration.name)
    return tensors
