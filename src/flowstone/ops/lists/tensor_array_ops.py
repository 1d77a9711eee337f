"""Operations on arrays of tensors, whose elements are written and read one by one, mostly in loops.

A handle is an `ArrayElements`, made anew by each execution of the op that creates it. What orders writes and
reads is the *flow*, a float32 scalar without a meaning of its own: each change takes one and hands one on.
It is the same tensor all along.

The family exists in three generations: the first hands its handle on by reference, the second as a string,
the third as a resource together with a first flow. `GENERATIONS` says how each spells a handle.

The gradient of an operation uses the array of gradients, which `TensorArrayGrad` finds by its *source*, the
name of the gradient computation: a read's gradient is a write, a write's gradient is a read. Shapes: an
index is a scalar, indices and lengths are vectors.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, X2, X3, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, Gradients, Known, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node, static_value
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, concatenate, format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.lists.tensor_array_elements import ArrayElements
from flowstone.ops.lists.tensor_array_gradients import gradient_array

GENERATIONS = {"": "Ref(string)", "V2": "string", "V3": "resource"}
_SHAPE, _CHANGES = "element_shape: shape = ?", "dynamic_size: bool = false ; clear_after_read: bool = true"


def _check_rank(node: Node, i: int, rank: int) -> None:
    dims = node.dims(i)
    if dims is not None and len(dims) != rank:
        raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")


def _scalar(value: Any) -> Any:
    if value.dim():
        raise invalid(f"TensorArray index must be scalar, but had shape: {format_dims(tuple(value.shape))}")
    return value


def _index(node: Node, i: int, argument: Any) -> Any:
    """The index argument of a call: a Python number where the plan knows it."""
    known = node.constant(i)
    if known is not None and known.shape == ():
        return int(known)
    return argument if node.dims(i) == () else Call(_scalar, argument)


def _places(node: Node, i: int, argument: Any) -> Any:
    """The indices argument of a call, a list."""
    known = node.constant(i)
    return known.tolist() if known is not None and known.ndim == 1 else Call(torch.Tensor.tolist, argument)


def _deprecated(kind: str, generation: str) -> tuple[int, str] | None:
    """From which version on graphs do without the op, and what they have instead."""
    if generation:
        return None
    kinds_now = {"Pack": "Gather", "Unpack": "Scatter"}
    return {"Scatter": 19, "Unpack": 20}.get(kind, 16), f"TensorArray{kinds_now.get(kind, kind)}V3"


def _declare(
    container: str, generation: str, signature: str, attributes: str = "", **traits: Any
) -> OpDeclaration:
    """An op of one generation that does this with an array; its first input is the handle, and it is what the
    op changes."""
    kind = container.capitalize()
    return op(
        f"TensorArray{kind}{generation}",
        f"handle: {GENERATIONS[generation]}{signature}",
        attributes,
        mutates=[0],
        stateful=generation == "V3",
        capturable=True,
        container=container,
        deprecated=_deprecated(kind, generation),
        **traits,
    )


# ---- creation


def _declare_creation(generation: str) -> None:
    outputs = "handle: resource, flow: float" if generation == "V3" else f"handle: {GENERATIONS[generation]}"
    changes = f"{_CHANGES} ; identical_element_shapes: bool = false" if generation == "V3" else _CHANGES
    named = f"{changes} ; tensor_array_name: string = ''"
    declaration = op(
        "TensorArray" + generation,
        f"size: int32 -> {outputs}",
        f"dtype: type ; {_SHAPE} ; {named}" if generation else f"dtype: type ; {named} ; {_SHAPE}",
        stateful=True,
        host=["size"],
        capturable=True,
        container="array",
        deprecated=_deprecated("", generation),
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        _check_rank(node, 0, 0)
        return [(2,), ()] if generation == "V3" else (2,)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        attributes = node.attributes
        name, dtype = attributes["tensor_array_name"] or node.name, attributes["dtype"]
        options = {
            "dims": attributes["element_shape"],
            "dynamic": attributes["dynamic_size"],
            "clears": attributes["clear_after_read"],
            "identical": attributes.get("identical_element_shapes", False),
            "device": env.device,
        }

        def make(size: Any) -> Any:
            if size.dim():
                shape = format_dims(tuple(size.shape))
                raise invalid(f"TensorArray size must be scalar, but had shape: {shape}")
            count = int(size)
            if count < 0:
                raise invalid("Size should be >= 0.")
            return ArrayElements(name, dtype, count, **options)

        return make if generation != "V3" else lambda size: (make(size), torch.zeros(()))

    declaration.not_differentiable()


def _gradient_arrays(node: Node, env: Environment) -> Kernel:
    source = node.attributes["source"]
    if len(node.declaration.outputs) == 1:
        return Call(ArrayElements.gradients_for, X0, source)
    return lambda array, flow: (array.gradients_for(source), flow)


def _declare_gradient_arrays(generation: str) -> None:
    taken = GENERATIONS[generation or "V2"]
    more = ", flow_out: float" if generation == "V3" else ""
    declaration = op(
        "TensorArrayGrad" + generation,
        f"handle: {taken}, flow_in: float -> grad_handle: {GENERATIONS[generation]}{more}",
        "source: string",
        stateful=True,
        mutates=[0],
        capturable=True,
        container="gradient",
        deprecated=_deprecated("Grad", generation),
    )
    declaration.infer(lambda node: [(2,), ()] if generation == "V3" else (2,))
    declaration.kernel(CPU, GPU)(_gradient_arrays)
    declaration.not_differentiable()


gradient_with_shape = op(
    "TensorArrayGradWithShape",
    "handle: resource, flow_in: float, shape_to_prepend: int32 -> grad_handle: resource, flow_out: float",
    "source: string",
    stateful=True,
    mutates=[0],
    container="array",
    host=["shape_to_prepend"],
)
gradient_with_shape.infer(lambda node: [(2,), ()])
gradient_with_shape.not_differentiable()


@gradient_with_shape.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    source = node.attributes["source"]
    return lambda array, flow, prefix: (array.gradients_for(source, tuple(prefix.tolist())), flow)


# ---- one element


def _declare_write(generation: str) -> None:
    declaration = _declare(
        "write",
        generation,
        ", index: int32, value: T, flow_in: float -> flow_out: float",
        "T: type",
        keeps=[2],
        aliases=[3],
        host=["index"],
        numbers=["index"],
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        _check_rank(node, 1, 0)
        return ()

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        index, dims = _index(node, 1, X1), node.static_shape(2)
        return Call(ArrayElements.write, X0, index, X2, X3, node.attributes["T"], dims)

    @declaration.gradient
    def _(op: Operation, flow: Tensor) -> Gradients:
        array = gradient_array(op, flow, flow)
        return None, None, array.read(op.inputs[1]), flow


def _declared_dims(handle: Any) -> Dims:
    """The shape that all elements of an array, or of one of its gradients, were declared to have."""
    node = handle.op
    while node.type in ("Enter", "Identity", "TensorArrayGradV3"):
        node = node.inputs[0].op
    return node.attributes["element_shape"] if node.type == "TensorArrayV3" else None


def _declare_read(generation: str) -> None:
    declaration = _declare(
        "read",
        generation,
        ", index: int32, flow_in: float -> value: dtype",
        "dtype: type",
        overlapping=True,  # the element stays the array's: nobody may overwrite it
        host=["index"],
        numbers=["index"],
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        _check_rank(node, 1, 0)
        return _declared_dims(node.inputs[0])

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        return Call(ArrayElements.read, X0, _index(node, 1, X1), node.attributes["dtype"])

    @declaration.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        array = gradient_array(op, dy, op.inputs[2])
        return None, None, array.write(op.inputs[1], dy).flow


# ---- many elements


def _element_dims(node: Node) -> Dims:
    return node.attributes["element_shape"]  # type: ignore[no-any-return]


def _is_whole(node: Node) -> bool:
    """Whether a Gather's indices are all of the array, as `TensorArray.stack` asks for."""
    handle, flow = node.inputs[0], node.inputs[2]
    creation, places, sequence = handle.op, node.constant(1), node.inputs[1].op
    fixed = creation.attributes.get("dynamic_size") is False
    if places is not None:
        size = creation.constant(0) if fixed else None
        return size is not None and places.tolist() == list(range(int(size)))
    if sequence.type != "Range" or sequence.constant(0) != 0 or sequence.constant(2) != 1:
        return False
    limit = sequence.inputs[1]
    if fixed and creation.inputs[0] is limit:
        return True
    length = limit.op
    return (
        length.type.startswith("TensorArraySize") and length.inputs[0] is handle and length.inputs[1] is flow
    )


def _declare_gather(generation: str) -> None:
    declaration = _declare(
        "gather",
        generation,
        ", indices: int32, flow_in: float -> value: dtype",
        "dtype: type ; element_shape: shape = ?",
        host=["indices"],
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        _check_rank(node, 1, 1)
        dims = _element_dims(node)
        return None if dims is None else concatenate(node.dims(1) or (None,), dims)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        places = None if _is_whole(node) else _places(node, 1, X1)
        return Call(ArrayElements.gather, X0, places, node.attributes["dtype"], _element_dims(node))

    @declaration.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        array = gradient_array(op, dy, op.inputs[2])
        return None, None, array.scatter(op.inputs[1], dy).flow


def _declare_scatter(generation: str) -> None:
    declaration = _declare(
        "scatter",
        generation,
        ", indices: int32, value: T, flow_in: float -> flow_out: float",
        "T: type",
        keeps=[2],
        aliases=[3],
        host=["indices"],
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        _check_rank(node, 1, 1)
        value, places = node.dims(2), node.dims(1)
        if value and places and None not in (value[0], places[0]) and value[0] != places[0]:
            raise ValueError(f"Dimensions must be equal, but are {value[0]} and {places[0]}")
        return ()

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        return Call(ArrayElements.scatter, X0, _places(node, 1, X1), X2, X3, node.attributes["T"])

    @declaration.gradient
    def _(op: Operation, flow: Tensor) -> Gradients:
        array = gradient_array(op, flow, flow)
        return None, None, array.gather(op.inputs[1]), flow


def _declare_concat(generation: str) -> None:
    declaration = _declare(
        "concat",
        generation,
        ", flow_in: float -> value: dtype, lengths: int64",
        "dtype: type ; element_shape_except0: shape = ?",
        host=["lengths"],
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims = node.attributes["element_shape_except0"]
        return [None if dims is None else (None, *dims), (None,)]

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        attributes = node.attributes
        return Call(ArrayElements.concatenate, X0, attributes["dtype"], attributes["element_shape_except0"])

    @declaration.gradient
    def _(op: Operation, dy: Tensor, _: Tensor) -> Gradients:
        array = gradient_array(op, dy, op.inputs[1])
        return None, array.split(dy, lengths=op.outputs[1]).flow


def _declare_split(generation: str) -> None:
    declaration = _declare(
        "split",
        generation,
        ", value: T, lengths: int64, flow_in: float -> flow_out: float",
        "T: type",
        keeps=[1],
        aliases=[3],
        host=["lengths"],
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        _check_rank(node, 2, 1)
        return ()

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        return Call(ArrayElements.split, X0, X1, X2, X3, node.attributes["T"])

    @declaration.gradient
    def _(op: Operation, flow: Tensor) -> Gradients:
        array = gradient_array(op, flow, flow)
        return None, array.concat(), None, flow


# ---- the whole


def _declare_size(generation: str) -> None:
    declaration = _declare("size", generation, ", flow_in: float -> size: int32", host=["size"])
    declaration.infer(lambda node: ())
    declaration.kernel(CPU, GPU)(lambda node, env: Call(ArrayElements.size, X0))
    declaration.not_differentiable()

    @declaration.value()
    def _(node: Node) -> Known | list[Known]:
        creation = creation_of_fixed_size(node)
        return None if creation is None else static_value(creation.inputs[0])

    @declaration.fold
    def _(node: Node) -> Equal:
        creation = creation_of_fixed_size(node)
        return None if creation is None else creation.constant(0)


def creation_of_fixed_size(node: Node) -> Node | None:
    """What makes the array that a node asks for its size, if that cannot change."""
    creation = node.inputs[0].op
    if creation.type.startswith("TensorArrayGrad"):
        creation = creation.inputs[0].op
    return creation if creation.attributes.get("dynamic_size") is False else None


def _declare_close(generation: str) -> None:
    declaration = _declare("close", generation, " ->")
    declaration.infer(lambda node: None)
    declaration.kernel(CPU, GPU)(lambda node, env: Call(ArrayElements.close, X0))
    declaration.not_differentiable()


for _generation in GENERATIONS:
    _declare_creation(_generation)
    _declare_gradient_arrays(_generation)
    _declare_write(_generation)
    _declare_read(_generation)
    _declare_gather(_generation)
    _declare_scatter(_generation)
    _declare_concat(_generation)
    _declare_split(_generation)
    _declare_size(_generation)
    _declare_close(_generation)

pack_op = _declare("pack", "", ", flow_in: float -> value: dtype", "dtype: type ; element_shape: shape = ?")
pack_op.infer(lambda node: None if (dims := _element_dims(node)) is None else (None, *dims))
pack_op.kernel(CPU, GPU)(
    lambda node, env: Call(ArrayElements.gather, X0, None, node.attributes["dtype"], _element_dims(node))
)
pack_op.no_gradient()

unpack_op = _declare(
    "unpack",
    "",
    ", value: T, flow_in: float -> flow_out: float",
    "T: type",
    keeps=[1],
    aliases=[2],
)
unpack_op.infer(lambda node: ())
unpack_op.no_gradient()


@unpack_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.attributes["T"]
    return lambda array, value, flow: array.scatter(range(len(value)), value, flow, dtype)
