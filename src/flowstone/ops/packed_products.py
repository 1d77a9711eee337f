"""Products of few rows by weights that do not change, from a packed copy of the weights.

A layer that sees few examples reads each weight for a handful of multiplications. oneDNN reads weights in
its own blocked order at the speed of the memory; in the program's order, where rows are multiples of 4 KiB
apart, at a third to a half of it (4096 x 4096 and 16 examples: 1.6 ms instead of 3.8). Plans only: where a
plan does not change a variable, `rewriting/weight_packing.py` makes ``_PackedMatMul`` of a product and
``_PackedWeights`` of the read of its weights, or ``_PackedConstant`` where they are a constant.

The copy is kept with the variable, `Variable.packed`, and made only after `_READS` products in a row have
seen the same value, since it takes as long as about twenty of them save. Every step that changes a variable
that may have one lets it go, afterwards (and before, lest it fail half-way): a copy that was begun meanwhile
is then nobody's. Measured in docs/design/017.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework import dtypes
from flowstone.framework.containers import Variable
from flowstone.framework.kernel import CPU, GPU, X0, X1, X2, Call
from flowstone.framework.node import Output
from flowstone.framework.operation import op
from flowstone.framework.shape import num_elements
from flowstone.framework.values import to_runtime
from flowstone.ops.matrices import ACTIVATED, onednn_is_faster
from flowstone.ops.stateful import handle_dims

__all__: list[str] = []

_READS = 8
_ROWS = 64  # of the other operand; with more, the multiplications take the time
_SMALLEST = 1 << 20  # elements
_PAGE = 1024  # float32 elements of 4 KiB
_USUAL_ROWS = 16  # for which oneDNN is to choose the order; it suits all of 1 to `_ROWS`


def gains_by_packing(rows: int, terms: int, columns: int, dtype: Any, transposed: bool) -> bool:
    """Whether a product [rows, terms] x [terms, columns] is faster by packed weights; `transposed`: these are
    [columns, terms] in memory.
    """
    if dtype is not dtypes.float32 or not 1 <= rows <= _ROWS or terms * columns < _SMALLEST:
        return False
    return (transposed or columns % _PAGE == 0) and onednn_is_faster()


def may_be_packed(x: Output) -> bool:
    """Whether a reference or handle may be that of a variable with a packed copy."""
    if x._dtype.is_ref:
        dtype, dims = x._dtype.base_dtype, x._dims
    elif x._dtype is dtypes.resource:
        node = x._op
        while node.type in ("Identity", "Switch", "Enter"):
            node = node._inputs[0]._op
        if node.type != "VarHandleOp":
            return bool(node._inputs) or node.type == "_Arg"  # it may come from anywhere
        dtype, dims = node.attributes["dtype"], node.attributes["shape"]
    else:
        return False
    if dtype is not dtypes.float32 or (dims is not None and len(dims) != 2):
        return False
    size = num_elements(dims)
    return size is None or size >= _SMALLEST


def unpack(holder: Any) -> None:
    """Lets go the packed copy of a variable; other resources have none."""
    if type(holder) is Variable:
        holder.packed = None


class Packed:
    """A variable's packed copy: `tensor`, None until `reads` are enough, of [out, in] weights that are the
    variable's transpose unless it is `turned` already."""

    __slots__ = ("reads", "tensor", "turned")

    def __init__(self, turned: bool) -> None:
        self.turned, self.reads = turned, 0
        self.tensor: torch.Tensor | None = None


def _reader(turned: bool) -> Any:
    """The weights [out, in] for oneDNN's product: the packed copy, or a view of the variable."""

    def packed_or_not(variable: Variable) -> torch.Tensor:
        kept = variable.packed
        if kept is None:
            kept = variable.packed = Packed(turned)
        if kept.turned is not turned:
            return variable.tensor if turned else variable.tensor.t()  # type: ignore[no-any-return]
        if kept.tensor is None:
            weights = variable.tensor if turned else variable.tensor.t()
            kept.reads += 1
            if kept.reads <= _READS:
                return weights  # type: ignore[no-any-return]
            kept.tensor = torch.ops.mkldnn._reorder_linear_weight.default(weights.contiguous(), _USUAL_ROWS)
        return kept.tensor

    return packed_or_not


def _view(turned: bool) -> Any:
    return lambda variable: variable.tensor if turned else variable.tensor.t()


def _turned_dims(dims: Any, turned: bool) -> Any:
    return dims if turned or dims is None else dims[::-1]


_weights = op(
    "_PackedWeights", "ref: Ref(T) -> weights: T", "turned: bool = false", T=[dtypes.float32], aliases=[0]
)
_resource_weights = op(
    "_PackedResourceWeights",
    "resource: resource -> weights: dtype",
    "turned: bool = false",
    dtype=[dtypes.float32],
    stateful=True,
    reads=[0],
    aliases=[0],
    capturable=True,  # on GPUs nothing is packed
)
_constant = op(
    "_PackedConstant", "value: T -> weights: T", "turned: bool = false", T=[dtypes.float32], aliases=[0]
)
_constant.infer(lambda node: _turned_dims(node.dims(0), node.attributes["turned"]))
_weights.infer(lambda node: _turned_dims(node.dims(0), node.attributes["turned"]))
_resource_weights.infer(lambda node: _turned_dims(handle_dims(node), node.attributes["turned"]))  # type: ignore[no-untyped-call]


@_weights.kernel(CPU, GPU)
@_resource_weights.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    make = _reader if env.device.type == "cpu" else _view
    return make(node.attributes["turned"])


@_constant.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    turned = node.attributes["turned"]
    if env.device.type != "cpu":
        return Call(torch.Tensor.view_as, X0, X0) if turned else Call(torch.t, X0)
    constant = node._inputs[0]._op
    value, key = constant.attributes["value"], f"{constant.name}/packed/{turned}"
    found = env.states.get(key)
    if found is None or found[0] is not value:  # one for all plans of a session, but for what they fold
        held = Variable(constant.name)
        held.tensor = to_runtime(value, dtypes.float32)
        found = env.states[key] = value, held
    return Call(_reader(turned), found[1])


_product = op(
    "_PackedMatMul",
    "a: T, weights: T, bias: NB*T -> product: T",
    "NB: int >= 0 ; activation: string = ''",
    T=[dtypes.float32],
)
_product.infer(lambda node: (node.dims(0)[0], node.dims(1)[0]))


@_product.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    """activation(a weights' + bias)."""
    activation, bias = node.attributes["activation"], X2 if node.attributes["NB"] else None
    if env.device.type == "cpu":
        name = activation.lower() or "none"
        return Call(torch.ops.mkldnn._linear_pointwise.default, X0, X1, bias, name, (), "")
    total = Call(torch.nn.functional.linear, X0, X1, bias)
    return Call(ACTIVATED[activation], total) if activation else total


for _declaration in (_weights, _resource_weights, _constant, _product):
    _declaration.not_differentiable()
