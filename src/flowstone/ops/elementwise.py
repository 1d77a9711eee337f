"""Element-wise mathematics: arithmetic, functions, comparisons, logic, casts.

Families (`unary`, `binary`, `comparison` …) are constructors that own inference, in-place variants and the broadcast of
gradients, so an op is one to four lines.
"""

from __future__ import annotations

import torch

from flowstone.framework import dtypes
from flowstone.framework.kernel import CPU, GPU, X0, X1, Call
from flowstone.framework.operation import op
from flowstone.framework.shape import broadcast
from flowstone.framework.tensor import Tensor, convert_to_tensor


def same_shape(node):
    """Infers that the output has the first input's shape."""
    return node.dims(0)


def broadcast_shape(node):
    """Infers the shape that both inputs broadcast to."""
    return broadcast(node.dims(0), node.dims(1))


def binary(name, function, in_place=None, types=dtypes.NUMBERS, **traits):
    """Declares an element-wise op of two inputs that broadcast; `in_place(x, y)` overwrites x."""
    declaration = op(name, "x: T, y: T -> z: T", T=types, **traits)
    declaration.infer(broadcast_shape)

    @declaration.kernel(CPU, GPU)
    def _(node, env):
        call = Call(function, X0, X1)
        dims = node.outputs[0].dims
        if in_place is not None and dims is not None and None not in dims:
            if node.dims(0) == dims:
                call.or_in_place(0, in_place, X0, X1)
        return call

    return declaration


add_v2 = binary("AddV2", torch.add, torch.Tensor.add_, commutative=True)
add_v2.not_differentiable()


def add(x, y, name=None):
    """x + y, element-wise with broadcasting."""
    return add_v2(x, y, name=name)


def _install_operator(function, name):
    def left(x, y):
        with x.graph.name_scope(name) as scope:
            return function(x, convert_to_tensor(y, x.dtype.base_dtype, "y"), name=scope)

    def right(y, x):
        with y.graph.name_scope(name) as scope:
            return function(convert_to_tensor(x, y.dtype.base_dtype, "x"), y, name=scope)

    Tensor.overload(f"__{name}__", left)
    Tensor.overload(f"__r{name}__", right)


_install_operator(add_v2, "add")
