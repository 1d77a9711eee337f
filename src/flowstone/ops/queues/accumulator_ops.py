"""The operations of conditional accumulators, of both generations.

TensorFlow 1 hands a reference along (``AccumulatorApplyGradient``), later versions a resource
(``ResourceAccumulatorApplyGradient``); sparse accumulators have references alone. Either is the object of
`accumulator_state.py` itself. Taking a gradient waits without a thread.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment, Kernel, Value
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.elementwise import ALL_NUMBERS
from flowstone.ops.queues.accumulator_state import Accumulator, DenseAccumulator, SparseAccumulator
from flowstone.ops.queues.queue_ops import find_resource, type_names

__all__: list[str] = []

_ATTRIBUTES = (
    "dtype: type ; shape: shape ; container: string = '' ; shared_name: string = '' ; "
    "reduction_type: string in ['MEAN', 'SUM'] = 'MEAN'"
)


def _creation_kernel(kind: type[Accumulator]) -> Any:
    def factory(node: Node, env: Environment) -> Value:
        attributes = node.attributes
        return Value(
            find_resource(
                node,
                env,
                "accumulator",
                lambda name: kind(
                    name, attributes["dtype"], attributes["shape"], attributes["reduction_type"] == "MEAN"
                ),
            )
        )

    return factory


def _checked(accumulator: Any, kind: type[Accumulator], dtype: Any) -> Any:
    if not isinstance(accumulator, kind):
        raise invalid(f"{accumulator!r} is not a {kind.__name__}")
    if accumulator.dtype is not dtype:
        raise invalid(
            f"Expected gradients of type {type_names((accumulator.dtype,))}, not {type_names((dtype,))}"
        )
    return accumulator


def _apply(node: Node, env: Environment) -> Kernel:
    dtype = node.attributes["dtype"]

    def apply(accumulator: Any, local_step: Any, gradient: Any) -> None:
        _checked(accumulator, DenseAccumulator, dtype).apply(_scalar(local_step, "local_step"), gradient)

    return apply


def _apply_sparse(node: Node, env: Environment) -> Kernel:
    dtype, has_shape = node.attributes["dtype"], node.attributes["has_known_shape"]

    def apply(accumulator: Any, local_step: Any, indices: Any, values: Any, shape: Any) -> None:
        _checked(accumulator, SparseAccumulator, dtype).apply(
            _scalar(local_step, "local_step"), indices, values, shape.tolist() if has_shape else None
        )

    return apply


def _take_kernel(kind: type[Accumulator]) -> Any:
    def factory(node: Node, env: Environment) -> AsyncCall:
        dtype = node.attributes["dtype"]
        return AsyncCall(
            lambda step, done, accumulator, required: _checked(accumulator, kind, dtype).take(
                step, done, _scalar(required, "num_required")
            )
        )

    return factory


def _scalar(value: Any, name: str) -> int:
    if value.ndim:
        raise invalid(f"Argument {name} must be scalar, but had bad shape {list(value.shape)}")
    return int(value)


def _set_time_step(accumulator: Accumulator, time_step: Any) -> None:
    accumulator.set_time_step(_scalar(time_step, "new_global_step"))


def _declare(
    name: str, signature: str, attributes: str = "", *, kernel: Any, infer: Any = None, **traits: Any
) -> None:
    if "dtype" in signature or attributes is _ATTRIBUTES:
        traits["dtype"] = ALL_NUMBERS
    declaration = op(name, signature, attributes, **traits)
    declaration.infer(infer or (lambda node: None))
    declaration.kernel(CPU)(kernel)
    declaration.not_differentiable()


for _prefix, _handle, _effects in (
    ("", "Ref(string)", {"mutates": [0]}),
    ("Resource", "resource", {"stateful": True}),
):
    _declare(
        f"{_prefix}ConditionalAccumulator",
        f"-> handle: {_handle}",
        _ATTRIBUTES,
        kernel=_creation_kernel(DenseAccumulator),
        infer=lambda node: (2,),
        stateful=True,
    )
    _declare(
        f"{_prefix}AccumulatorApplyGradient",
        f"handle: {_handle}, local_step: int64, gradient: dtype ->",
        kernel=_apply,
        host=["local_step"],
        **_effects,
    )
    _declare(
        f"{_prefix}AccumulatorNumAccumulated",
        f"handle: {_handle} -> num_accumulated: int32",
        kernel=lambda node, env: lambda accumulator: torch.tensor(accumulator.count, dtype=torch.int32),
        infer=lambda node: (),
        **_effects,
    )
    _declare(
        f"{_prefix}AccumulatorSetGlobalStep",
        f"handle: {_handle}, new_global_step: int64 ->",
        kernel=lambda node, env: _set_time_step,
        host=["new_global_step"],
        **_effects,
    )
    _declare(
        f"{_prefix}AccumulatorTakeGradient",
        f"handle: {_handle}, num_required: int32 -> average: dtype",
        kernel=_take_kernel(DenseAccumulator),
        asynchronous=True,
        host=["num_required"],
        **_effects,
    )

_declare(
    "SparseConditionalAccumulator",
    "-> handle: Ref(string)",
    _ATTRIBUTES,
    kernel=_creation_kernel(SparseAccumulator),
    infer=lambda node: (2,),
    stateful=True,
)
_declare(
    "SparseAccumulatorApplyGradient",
    "handle: Ref(string), local_step: int64, gradient_indices: int64, gradient_values: dtype, "
    "gradient_shape: int64 ->",
    "has_known_shape: bool",
    kernel=_apply_sparse,
    mutates=[0],
    host=["local_step", "gradient_shape"],
)
_declare(
    "SparseAccumulatorTakeGradient",
    "handle: Ref(string), num_required: int32 -> indices: int64, values: dtype, shape: int64",
    kernel=_take_kernel(SparseAccumulator),
    infer=lambda node: [None, None, None],
    mutates=[0],
    asynchronous=True,
    host=["num_required", "shape"],
)
