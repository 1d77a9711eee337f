"""Weights that a plan does not change, in the form that a kernel wants, kept with their variable.

Plans only: ``_PackedWeights``, ``_PackedResourceWeights`` and ``_PackedConstant`` stand for what is made of a
variable or constant by one of the `FORMS`, which the modules of the kernels declare
(`packed_products`, `fused_convolutions`, `winograd_convolutions`) and `weight_packing.py` chooses.

The copy is `Variable.packed`, made only after `_READS` steps in a row have seen the same value, since it
takes longer than one step saves. Every step that changes a variable that may have one lets it go, afterwards
(and before, lest it fail half-way): a copy that was begun meanwhile is then nobody's. Measured in
docs/design/017.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.containers import Variable
from flowstone.framework.declarations.kernel import CPU, GPU, Call
from flowstone.framework.declarations.operation import op
from flowstone.framework.graphs.subgraph import PlanOutput
from flowstone.framework.machine import machine, onednn
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.framework.types.values import to_runtime
from flowstone.ops.variables.stateful import handle_dims

__all__: list[str] = []

_READS = 8
_HANDING_ON = frozenset({"identity", "switch", "enter"})  # roles
Dims = tuple[int, ...]


class Form(NamedTuple):
    """What is made of weights, by `numbers` that a node has for it.

    `dims(dims, numbers)` gives the shapes of the results; `view(weights, numbers)` the results of weights as
    they are; `pack(results, numbers)` the same values in the order that the kernel reads fastest.
    """

    dims: Callable[[Any, Dims], list[Any]]
    view: Callable[[torch.Tensor, Dims], Sequence[torch.Tensor]]
    pack: Callable[[Sequence[torch.Tensor], Dims], Sequence[torch.Tensor]]


FORMS: dict[str, Form] = {}


def reordered_filter(
    filters: torch.Tensor, padding: Dims, strides: Dims, dilations: Dims, dims: Dims
) -> torch.Tensor:
    """A filter [out, in, height, width] in the order of oneDNN's convolution of images of these dims,
    channels first.
    """
    reorder = onednn.reordered_filter
    return reorder(filters.contiguous(), padding, strides, dilations, 1, dims)  # type: ignore[no-any-return]


def may_be_packed(x: PlanOutput) -> bool:
    """Whether a reference or handle may be that of a variable with a packed copy."""
    if x.dtype.is_ref:
        dtype, dims = x.dtype.base_dtype, x.dims
    elif x.dtype is dtypes.resource:
        node = x.op
        while node.declaration.role in _HANDING_ON:
            node = node.inputs[0].op
        if node.declaration.role != "variable":
            return bool(node.inputs) or node.is_feed  # it may come from anywhere
        dtype, dims = node.attributes["dtype"], node.attributes["shape"]
    else:
        return False
    if dtype is not dtypes.float32:
        return False
    if dims is None:
        return True
    size = num_elements(dims)
    return len(dims) in (2, 4) and (size is None or machine.current().packs(size, len(dims)))


def unpack(holder: Any) -> None:
    """Frees the packed copy of a variable; other resources have none."""
    if type(holder) is Variable:
        holder.packed = None


class Packed:
    """A variable's packed copy: `weights`, None until `reads` are enough, in the form and by the numbers that
    `key` is.
    """

    __slots__ = ("key", "reads", "weights")

    def __init__(self, key: tuple[str, Dims]) -> None:
        self.key, self.reads = key, 0
        self.weights: Sequence[torch.Tensor] | None = None


def _reader(form: str, numbers: Dims) -> Any:
    """The kernel that gives the weights: the packed copy, or what is made of the variable now."""
    key, (_, view, pack) = (form, numbers), FORMS[form]

    def packed_or_not(variable: Variable) -> Sequence[torch.Tensor]:
        kept = variable.packed
        if kept is None:
            kept = variable.packed = Packed(key)
        if kept.key != key:
            return view(variable.tensor, numbers)
        if kept.weights is None:
            weights = view(variable.tensor, numbers)
            kept.reads += 1
            if kept.reads <= _READS:
                return weights
            kept.weights = pack(weights, numbers)
        return kept.weights  # type: ignore[no-any-return]

    return packed_or_not


def _kernel(node: Any, env: Any) -> Any:
    form, numbers = node.attributes["form"], tuple(node.attributes["numbers"])
    if env.device.type == "cpu":
        return _reader(form, numbers)
    return lambda variable: FORMS[form].view(variable.tensor, numbers)


_ATTRIBUTES = "N: int >= 1 ; form: string ; numbers: list(int)"
_weights = op(
    "_PackedWeights",
    "ref: Ref(T) -> weights: N*T",
    _ATTRIBUTES,
    T=[dtypes.float32],
    aliases=[0],
    snapshot=True,
    free=True,
)
_resource_weights = op(
    "_PackedResourceWeights",
    "resource: resource -> weights: N*dtype",
    _ATTRIBUTES,
    dtype=[dtypes.float32],
    stateful=True,
    reads=[0],
    aliases=[0],
    snapshot=True,
    capturable=True,  # on GPUs nothing is packed
    free=True,
)
_constant = op(
    "_PackedConstant",
    "value: T -> weights: N*T",
    _ATTRIBUTES,
    T=[dtypes.float32],
    aliases=[0],
    snapshot=True,
    free=True,
)


def _infer(dims_of: Any) -> Any:
    return lambda node: FORMS[node.attributes["form"]].dims(dims_of(node), tuple(node.attributes["numbers"]))


_weights.infer(_infer(lambda node: node.dims(0)))
_resource_weights.infer(_infer(handle_dims))
_constant.infer(_infer(lambda node: node.dims(0)))


@_weights.kernel(CPU, GPU)
@_resource_weights.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    return _kernel(node, env)


@_constant.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    form, numbers = node.attributes["form"], tuple(node.attributes["numbers"])
    if env.device.type != "cpu":
        return lambda weights: FORMS[form].view(weights, numbers)
    constant = node.inputs[0].op
    value, key = constant.attributes["value"], f"{constant.name}/packed/{form}/{numbers}"
    found = env.states.get(key)
    if found is None or found[0] is not value:  # one for all plans of a session, but for what they fold
        held = Variable(constant.name)
        held.tensor = to_runtime(value, dtypes.float32)
        found = env.states[key] = value, held
    return Call(_reader(form, numbers), found[1])


for _declaration in (_weights, _resource_weights, _constant):
    _declaration.not_differentiable()
