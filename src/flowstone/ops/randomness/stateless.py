"""Random values that are a function of a seed alone: the same in every step, session, device and version.

A seed is a vector of two integers. Uniform, normal, truncated and categorical values, and integers, are
TensorFlow's own for the same seed (`philox.py`). Newer ops take the key and the counter that belong to a seed
instead, and the number of an algorithm: 1 is Philox; 3, any, is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, OpDeclaration, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import format_dims
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.class_weights import chosen_classes, cost_of_choices
from flowstone.ops.randomness.philox import State

__all__ = [
    "stateless_categorical",
    "stateless_multinomial",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
]

_FLOATS = (*dtypes.FLOATS, dtypes.bfloat16)
_INTEGERS = (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)
_SHAPES = "type in [int32, int64] = int32"
_ALGORITHMS = (1, 3)

Draw = Callable[[State, int, torch.dtype, torch.device], torch.Tensor]


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def sizes_of(shape: torch.Tensor) -> list[int]:
    """The numbers of a shape; InvalidArgumentError for what is none."""
    if shape.ndim != 1:
        raise _invalid(f"shape must be a vector of integers, got shape {format_dims(tuple(shape.shape))}")
    sizes: list[int] = shape.tolist()
    if any(n < 0 for n in sizes):
        raise _invalid(f"Dimensions of the shape must be >= 0, got {sizes}")
    return sizes


def state_of_seed(seed: torch.Tensor) -> State:
    """The state that belongs to a seed [2]."""
    if tuple(seed.shape) != (2,):
        raise _invalid(f"seed must have shape [2], not {format_dims(tuple(seed.shape))}")
    first, second = seed.tolist()
    return philox.state_of((first, second))


def state_of_key(key: torch.Tensor, counter: torch.Tensor, algorithm: torch.Tensor) -> State:
    """The state of key [1] and counter [2], if the algorithm is Philox."""
    if int(algorithm) not in _ALGORITHMS:
        raise _invalid(f"Unsupported algorithm id: {int(algorithm)}")
    if key.numel() < 1 or counter.numel() < 2:
        raise _invalid(f"key needs one number, counter two: got {key.numel()} and {counter.numel()}")
    words = [
        *key.view(torch.int64).reshape(-1)[:1].tolist(),
        *counter.view(torch.int64).reshape(-1)[:2].tolist(),
    ]
    numbers = [word % 2**64 for word in words]
    return State(numbers[0], numbers[1] | numbers[2] << 64)


def _infer(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    if len(node.inputs) in (2, 4) and _takes_seed(node):
        seed = node.dims(1)
        if seed is not None and (len(seed) != 1 or seed[0] not in (None, 2)):
            raise ValueError(f"seed must have shape [2], not {seed}")
    return node.constant_dims(0)


def _takes_seed(node: Node) -> bool:
    return node.declaration.inputs[1].name == "seed"


def _declare(
    name: str,
    types: tuple[DType, ...],
    default: str,
    draw: Draw,
    bounds: bool = False,
    shapes: str = _SHAPES,
    seeds: str = "[int32, int64]",
) -> None:
    """The op that takes a seed, and the one that takes key, counter and algorithm."""
    more = ", minval: dtype, maxval: dtype" if bounds else ""
    for version in ("", "V2"):
        seeded = not version
        inputs = (
            "shape: T, seed: Tseed" if seeded else "shape: Tshape, key: uint64, counter: uint64, alg: int32"
        )
        kinds = f"T: {shapes} ; Tseed: type in {seeds} = int64" if seeded else f"Tshape: {_SHAPES}"
        given = ["shape", "seed"] if seeded else ["shape", "key", "counter", "alg"]
        more_types = (dtypes.uint32, dtypes.uint64) if bounds and version else ()
        allowed = ", ".join(each.name for each in (*types, *more_types))
        declaration = op(
            f"Stateless{name}{version}",
            f"{inputs}{more} -> output: dtype",
            f"dtype: type in [{allowed}]{default} ; {kinds}",
            host=[*given, "minval", "maxval"] if bounds else given,
            cost=40,
        )
        declaration.infer(_infer)
        declaration.not_differentiable()
        _set_kernel(declaration, seeded, draw, bounds)


def _set_kernel(declaration: OpDeclaration, seeded: bool, draw: Draw, bounds: bool) -> None:
    count = 1 if seeded else 3

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        kind, device = node.attributes["dtype"].torch, env.device
        state_of: Callable[..., State] = state_of_seed if seeded else state_of_key

        drawn = _drawn(node, device, draw, count + 1 if bounds else 0)
        if drawn is not None:
            return lambda shape, *rest: drawn(state_of(*rest[:count]))

        def values(shape: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
            sizes, state = sizes_of(shape), state_of(*rest[:count])
            if not bounds:
                return draw(state, math.prod(sizes), kind, device).reshape(sizes)
            low, high = (int(x) for x in rest[count:])
            if low >= high:
                raise _invalid(f"Need minval < maxval, got {low} >= {high}")
            return philox.integers_between(state, math.prod(sizes), low, high, kind, device).reshape(sizes)

        return values


def _drawn(
    node: Node, device: torch.device, draw: Draw, bounds: int
) -> Callable[[State], torch.Tensor] | None:
    """The numbers as a function of the state alone, where the shape is known, and the bounds, if there are
    some from this input on."""
    shape, kind = node.outputs[0].static_shape, node.attributes["dtype"].torch
    if shape is None or node.constant(0) is None or kind is None:
        return None
    if not bounds:
        return draw.of(shape, kind, device) if isinstance(draw, philox.Distribution) else None
    low, high = node.constant(bounds), node.constant(bounds + 1)
    if low is None or high is None or low >= high:
        return None
    return philox.integers_of(shape, int(low), int(high), kind, device)


def full(state: State, count: int, kind: torch.dtype, device: torch.device) -> torch.Tensor:
    """Integers of all numbers of the type."""
    bits = 8 * kind.itemsize
    numbers = philox.full_integers(state, count, bits, device)
    if kind is torch.uint64:
        return numbers.view(torch.uint64)
    return numbers.to(torch.int32) if kind is torch.int32 else numbers.to(kind)


_declare("RandomUniform", _FLOATS, " = float", philox.uniform)
_declare("RandomNormal", _FLOATS, " = float", philox.normal)
_declare("TruncatedNormal", _FLOATS, " = float", philox.truncated_normal)
_declare("RandomUniformFullInt", _INTEGERS, " = uint64", full, seeds="[int32, int64, uint32, uint64]")
_declare(
    "RandomUniformInt",
    (dtypes.int32, dtypes.int64),
    "",
    full,
    bounds=True,
    shapes="type in [int32, int64]",
)

# ---- keys

key_and_counter_op = op(
    "StatelessRandomGetKeyCounter",
    "seed: Tseed -> key: uint64, counter: uint64",
    "Tseed: type in [int32, int64] = int64",
    host=["seed", "key", "counter"],
)
key_and_counter_op.not_differentiable()


@key_and_counter_op.infer
def _(node: Node) -> Shapes:
    seed = node.dims(0)
    if seed is not None and (len(seed) != 1 or seed[0] not in (None, 2)):
        raise ValueError(f"seed must have shape [2], not {seed}")
    return [(1,), (2,)]


@key_and_counter_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def key_and_counter(seed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = state_of_seed(seed)
        counter = [state.counter % 2**64, state.counter >> 64]
        return torch.tensor([state.key], dtype=torch.uint64), torch.tensor(counter, dtype=torch.uint64)

    return key_and_counter


# ---- categories

multinomial_op = op(
    "StatelessMultinomial",
    "logits: T, num_samples: int32[], seed: Tseed -> output: output_dtype",
    "Tseed: type in [int32, int64] = int64 ; output_dtype: type in [int32, int64] = int64",
    T=(*dtypes.REAL, dtypes.bfloat16, dtypes.uint32, dtypes.uint64),
    host=["num_samples", "seed"],
    by_element=True,
    cost=cost_of_choices,
)
multinomial_op.not_differentiable()


@multinomial_op.infer
def _(node: Node) -> Shapes:
    dims, count = node.dims(0), node.constant(1)
    if dims is not None and len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
    rows = None if dims is None else dims[0]
    return (rows, None if count is None else int(count))


@multinomial_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    kind = node.attributes["output_dtype"].torch

    def draw(logits: torch.Tensor, num_samples: torch.Tensor, seed: torch.Tensor) -> torch.Tensor:
        count = int(num_samples)
        if logits.ndim != 2 or logits.shape[1] == 0:
            raise _invalid(f"logits should be a matrix with classes, got {format_dims(tuple(logits.shape))}")
        if count < 0:
            raise _invalid(f"num_samples should be nonnegative, got {count}")
        rows = logits.shape[0]
        uniform = philox.uniform(state_of_seed(seed), rows * count, torch.float64, env.device)
        found = chosen_classes(logits, uniform.view(rows, count))
        return found.to(kind)

    return draw


# ---- public functions


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Values of [minval, maxval), a function of `seed` [2].

    `maxval`: 1 for floating point if None; of integers both bounds must be given, or be None for all numbers
    of the type. ValueError for other types.
    """
    dtype = dtypes.as_dtype(dtype)
    if dtype not in (*_FLOATS, *_INTEGERS):
        raise ValueError(f"Argument `dtype` got invalid value {dtype}.")
    if dtype.is_integer:
        if (minval is None) != (maxval is None):
            raise ValueError(f"For {dtype}, `minval` and `maxval` must be both None or not None.")
    elif maxval is None:
        maxval = 1
    with get_default_graph().name_scope(name or "stateless_random_uniform") as scope:
        shape = convert_to_tensor(shape, None if isinstance(shape, Tensor) else dtypes.int32, name="shape")
        if dtype.is_integer and minval is None:
            return F.StatelessRandomUniformFullInt(shape, seed=seed, dtype=dtype, name=scope)
        low = convert_to_tensor(minval, dtype, name="min")
        high = convert_to_tensor(maxval, dtype, name="max")
        if dtype.is_integer:
            return F.StatelessRandomUniformInt(shape, seed, low, high, name=scope)
        values = F.StatelessRandomUniform(shape, seed=seed, dtype=dtype)
        scaled = F.Mul(values, F.Sub(high, low, name="sub"), name="mul")
        return F.Add(scaled, low, name=scope)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Normal values, a function of `seed` [2]."""
    return _scaled(F.StatelessRandomNormal, "stateless_random_normal", shape, seed, mean, stddev, dtype, name)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Normal values within two deviations of `mean`, a function of `seed` [2]."""
    label = "stateless_truncated_normal"
    return _scaled(F.StatelessTruncatedNormal, label, shape, seed, mean, stddev, dtype, name)


def _scaled(
    declaration: OpDeclaration,
    label: str,
    shape: Any,
    seed: Any,
    mean: Any,
    stddev: Any,
    dtype: Any,
    name: str | None,
) -> Tensor:
    with get_default_graph().name_scope(name or label) as scope:
        shape = convert_to_tensor(shape, None if isinstance(shape, Tensor) else dtypes.int32, name="shape")
        center = convert_to_tensor(mean, dtype, name="mean")
        width = convert_to_tensor(stddev, dtype, name="stddev")
        values = declaration(shape, seed=seed, dtype=dtypes.as_dtype(dtype))
        return F.Add(F.Mul(values, width, name="mul"), center, name=scope)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Classes [rows, num_samples] by unnormalised logarithms of probabilities [rows, classes]."""
    return multinomial_op(logits, num_samples, seed, output_dtype=dtype, name=name or "stateless_categorical")


def stateless_multinomial(
    logits: Any, num_samples: Any, seed: Any, output_dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """As `stateless_categorical`."""
    return multinomial_op(
        logits, num_samples, seed, output_dtype=output_dtype, name=name or "stateless_multinomial"
    )
