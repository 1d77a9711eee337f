"""Random values of several distributions.

Those of one distribution, integers, and gamma and Poisson values with seeds on a CPU are TensorFlow's; see
`op_seeds.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Call, Environment, Kernel, KernelFactory
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.constants import zeros_like
from flowstone.ops.numbers.elementwise import broadcast_shape
from flowstone.ops.numbers.special_functions import gamma_sample_slope
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.op_seeds import (
    BLOCKS_OF_A_NUMBER,
    SEEDS,
    SeededSequence,
    generator_of,
    get_seed,
    seed_attributes,
    sequence_of,
    set_random_seed,
)
from flowstone.ops.randomness.philox import Distribution, State
from flowstone.ops.randomness.rejection_streams import cast, gamma_values, poisson_values
from flowstone.ops.randomness.truncated_normals import normal_within

__all__ = [
    "get_seed",
    "random_gamma",
    "random_normal",
    "random_poisson",
    "random_uniform",
    "set_random_seed",
    "truncated_normal",
]

REAL = (*dtypes.REAL, dtypes.bfloat16)
FLOATS = (*dtypes.FLOATS, dtypes.bfloat16)

# ---- distributions


def _truncated(
    shape: list[int], generator: torch.Generator, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """Standard normal values within two deviations, by the inverse of the distribution function."""
    exact = dtype if dtype in (torch.float32, torch.float64) else torch.float32
    bound = math.erf(2 / math.sqrt(2))
    values = torch.empty(shape, dtype=exact, device=device).uniform_(-bound, bound, generator=generator)
    return values.erfinv_().mul_(math.sqrt(2)).clamp_(-2, 2).to(dtype)


def _shape_from_input(node: Node) -> Dims:
    dims = node.dims(0)
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    return node.constant_dims(0)


def _fixed_shape(node: Node) -> list[int] | None:
    value = node.constant(0)
    return None if value is None else value.tolist()


def _filled_kernel(function: Callable[..., torch.Tensor], seeded: Distribution) -> KernelFactory:
    """A kernel factory for `function(shape, generator=, dtype=, device=)`,

    called by the step itself if it can be; with seeds on a CPU, for what `seeded` makes of a sequence.
    """

    def factory(node: Node, env: Environment) -> Kernel:
        sequence = sequence_of(node, env)
        if sequence is not None:
            return _seeded_kernel(sequence, seeded, node, env.device)
        keywords = {
            "generator": generator_of(node, env),
            "dtype": node.attributes["dtype"].torch,
            "device": env.device,
        }
        shape = _fixed_shape(node)
        if shape is not None:
            return Call(function, shape, **keywords)
        return lambda shape: function(shape.tolist(), **keywords)

    return factory


def _seeded_kernel(
    sequence: SeededSequence, seeded: Distribution, node: Node, device: torch.device
) -> Kernel:
    dtype, fixed = node.attributes["dtype"].torch, _fixed_shape(node)
    if fixed is None:
        return lambda shape: seeded(sequence.take(math.prod(sizes := shape.tolist())), sizes, dtype, device)
    return _of_blocks(sequence, fixed, seeded.of(fixed, dtype, device))


def _of_blocks(sequence: SeededSequence, sizes: list[int], drawn: Callable[[State], torch.Tensor]) -> Call:
    """What draws numbers of these sizes, always as many."""
    blocks, take = math.prod(sizes) * BLOCKS_OF_A_NUMBER, sequence.take_blocks
    return Call(lambda: drawn(take(blocks)))


def _filled(name: str, function: Callable[..., torch.Tensor], seeded: Distribution) -> OpDeclaration:
    declaration = op(
        name,
        "shape: T -> output: dtype",
        f"{SEEDS} ; dtype: type in [half, bfloat16, float, double] ; T: type in [int32, int64]",
        stateful=True,
        host=["shape"],
        capturable=True,
        by_element=True,
        cost=10,
    )
    declaration.infer(_shape_from_input)
    declaration.kernel(CPU, GPU)(_filled_kernel(function, seeded))
    return declaration.not_differentiable()


random_uniform_op = _filled("RandomUniform", torch.rand, philox.uniform)
random_standard_normal_op = _filled("RandomStandardNormal", torch.randn, philox.normal)
truncated_normal_op = _filled("TruncatedNormal", _truncated, philox.truncated_normal)

random_uniform_int_op = op(
    "RandomUniformInt",
    "shape: T, minval: Tout[], maxval: Tout[] -> output: Tout",
    f"{SEEDS} ; Tout: type in [int32, int64] ; T: type in [int32, int64]",
    stateful=True,
    host=["shape", "minval", "maxval"],
    capturable=True,
    by_element=True,
)
random_uniform_int_op.not_differentiable()


@random_uniform_int_op.infer
def _(node: Node) -> Shapes:
    for i, name in ((1, "minval"), (2, "maxval")):
        if given := node.dims(i):
            raise ValueError(f"Shape must be rank 0 but is rank {len(given)} for {name}")
    return _shape_from_input(node)


@random_uniform_int_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, device, sequence = node.attributes["Tout"].torch, env.device, sequence_of(node, env)
    generator = generator_of(node, env) if sequence is None else None

    def drawn(sizes: list[int], low: int, high: int) -> torch.Tensor:
        if low >= high:
            raise errors.InvalidArgumentError(None, None, f"Need minval < maxval, got {low} >= {high}")
        if sequence is None:
            return torch.randint(low, high, sizes, generator=generator, dtype=dtype, device=device)
        state = sequence.take(math.prod(sizes))
        return philox.integers_between(state, sizes, low, high, dtype, device)

    shape, low, high = (node.constant(i) for i in range(3))
    if shape is None or low is None or high is None:
        return lambda shape, low, high: drawn(shape.tolist(), int(low), int(high))
    sizes, bounds = shape.tolist(), (int(low), int(high))
    if sequence is None or bounds[0] >= bounds[1]:
        return Call(drawn, sizes, *bounds)
    return _of_blocks(sequence, sizes, philox.integers_of(sizes, *bounds, dtype, device))


# ---- distributions with parameters


def _leading_shape(node: Node) -> Dims:
    leading, parameters = _shape_from_input(node), node.dims(1)
    return None if leading is None or parameters is None else (*leading, *parameters)


def _seeded_streams(
    sequence: SeededSequence, values: Callable[..., torch.Tensor], dtype: torch.dtype
) -> Kernel:
    """What draws `values(state, parameters, samples)`, a stream each, from a sequence."""

    def draw(shape: torch.Tensor, parameters: torch.Tensor) -> torch.Tensor:
        sizes = shape.tolist()
        samples, each = math.prod(sizes), parameters.reshape(-1).double()
        drawn = values(sequence.take(samples * len(each)), each, samples)
        return cast(drawn.reshape(*sizes, *parameters.shape), dtype)

    return draw


random_gamma_op = op(
    "RandomGamma",
    "shape: S, alpha: T -> output: T",
    f"{SEEDS} ; S: type in [int32, int64] ; T: type in [half, float, double]",
    stateful=True,
    host=["shape"],
)
random_gamma_op.infer(_leading_shape)


@random_gamma_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    sequence = sequence_of(node, env)
    if sequence is not None:
        return _seeded_streams(sequence, gamma_values, node.attributes["T"].torch)
    generator, is_half = generator_of(node, env), node.dtype(1) is dtypes.float16

    def draw(shape: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
        wide = alpha.float() if is_half else alpha
        wide = wide.expand(*shape.tolist(), *alpha.shape).contiguous()
        return torch._standard_gamma(wide, generator).to(alpha.dtype)

    return draw


@random_gamma_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """By implicit differentiation of the samples, summed over the samples of each parameter."""
    shape, alpha = op.inputs
    count = F.Size(shape, name="num_sample_dimensions")
    ones = F.Fill(F.ExpandDims(count, 0), 1, name="ones")
    spread = F.Reshape(alpha, F.ConcatV2([ones, F.Shape(alpha)], 0, name="concat"))
    slope = F.RandomGammaGrad(spread, op.outputs[0])
    return None, F.Sum(F.Mul(dy, slope, name="mul"), F.Range(0, count, 1, name="range"))


random_gamma_grad = op(
    "RandomGammaGrad",
    "alpha: T, sample: T -> output: T",
    T=(dtypes.float32, dtypes.float64),
    capturable=False,  # it sums a series as far as the numbers ask for
)
random_gamma_grad.infer(broadcast_shape)
random_gamma_grad.no_gradient()


@random_gamma_grad.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return gamma_sample_slope


def _poisson_kernel(node: Node, env: Environment) -> Kernel:
    sequence, dtype = sequence_of(node, env), node.attributes["dtype"].torch
    if sequence is not None:
        return _seeded_streams(sequence, poisson_values, dtype)
    generator = generator_of(node, env)

    def draw(shape: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
        wide = rate.to(torch.float64).expand(*shape.tolist(), *rate.shape)
        return torch.poisson(wide.contiguous(), generator).to(dtype)

    return draw


random_poisson_op = op(
    "RandomPoisson",
    "shape: S, rate: dtype -> output: dtype",
    f"{SEEDS} ; S: type in [int32, int64] ; dtype: type in [half, float, double]",
    stateful=True,
    host=["shape"],
)
random_poisson_v2_op = op(
    "RandomPoissonV2",
    "shape: S, rate: R -> output: dtype",
    f"{SEEDS} ; S: type in [int32, int64] ; R: type in [half, float, double, int32, int64] = double ; "
    "dtype: type in [half, float, double, int32, int64] = int64",
    stateful=True,
    host=["shape"],
)
for _declaration in (random_poisson_op, random_poisson_v2_op):
    _declaration.infer(_leading_shape)
    _declaration.kernel(CPU, GPU)(_poisson_kernel)
    _declaration.no_gradient()

parameterized_truncated_normal_op = op(
    "ParameterizedTruncatedNormal",
    "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
    f"{SEEDS} ; dtype: type in [half, bfloat16, float, double] ; T: type in [int32, int64]",
    stateful=True,
    host=["shape"],
)
parameterized_truncated_normal_op.infer(_shape_from_input)
parameterized_truncated_normal_op.not_differentiable()


@parameterized_truncated_normal_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    generator = generator_of(node, env)

    def draw(shape: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        sizes = shape.tolist()
        if not sizes:
            raise invalid("Shape tensor must not be empty")
        for what, p in zip(("means", "stddevs", "minvals", "maxvals"), parameters):
            if p.ndim > 1:
                raise invalid(f"Input {what} should be a scalar or vector, got shape: {list(p.shape)}")
        mean, deviation, low, high = [
            p.to(torch.float64).reshape(-1, *(1,) * (len(sizes) - 1)) for p in parameters
        ]
        uniform = torch.rand(sizes, generator=generator, dtype=torch.float64, device=mean.device)
        return normal_within(uniform, mean, deviation, low, high).to(parameters[0].dtype)

    return draw


# ---- public functions


def _shape_tensor(shape: Any) -> Tensor:
    if isinstance(shape, Tensor):
        return shape
    if isinstance(shape, (list, tuple)) and any(isinstance(n, Tensor) for n in shape):
        return F.Pack(list(shape), name="shape")
    dims = shape.as_list() if hasattr(shape, "as_list") else shape
    return convert_to_tensor(np.asarray(dims, np.int32) if np.size(dims) == 0 else dims, name="shape")


def _scaled(
    declaration: OpDeclaration,
    default: str,
    shape: Any,
    mean: Any,
    stddev: Any,
    dtype: Any,
    seed: int | None,
    name: str | None,
) -> Tensor:
    with get_default_graph().name_scope(name or default) as scope:
        shape = _shape_tensor(shape)
        dtype = dtypes.as_dtype(dtype)
        mean = convert_to_tensor(mean, dtype, name="mean")
        stddev = convert_to_tensor(stddev, dtype, name="stddev")
        values = declaration(shape, dtype=dtype, **seed_attributes(seed))
        return F.Add(F.Mul(values, stddev, name="mul"), mean, name=scope)


def random_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normal values of this shape; `mean` and `stddev` broadcast to it. Floating types."""
    return _scaled(random_standard_normal_op, "random_normal", shape, mean, stddev, dtype, seed, name)


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normal values of this shape, none further than two `stddev` from `mean`. Floating types."""
    return _scaled(truncated_normal_op, "truncated_normal", shape, mean, stddev, dtype, seed, name)


def random_uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Values uniform in [minval, maxval), which is [0, 1) by default and must be given for int32 and int64.

    ValueError for other types or a missing bound; InvalidArgumentError for integers without minval < maxval.
    """
    dtype = dtypes.as_dtype(dtype)
    accepted = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)
    if dtype not in accepted:
        names = ", ".join(f"tf.{one.name}" for one in accepted)
        raise ValueError(f"Argument `dtype` got invalid value {dtype!r}. Accepted dtypes are ({names}).")
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    with get_default_graph().name_scope(name or "random_uniform") as scope:
        shape = _shape_tensor(shape)
        minval = convert_to_tensor(minval, dtype, name="min")
        maxval = convert_to_tensor(maxval, dtype, name="max")
        if dtype.is_integer:
            return random_uniform_int_op(shape, minval, maxval, name=scope, **seed_attributes(seed))
        values = random_uniform_op(shape, dtype=dtype, **seed_attributes(seed))
        return F.Add(F.Mul(values, F.Sub(maxval, minval, name="sub"), name="mul"), minval, name=scope)


def random_gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Samples [*shape, *broadcast(alpha,

    beta)] of gamma distributions with shapes alpha and inverse scales beta.

    Differentiable by both parameters.
    """
    dtype = dtypes.as_dtype(dtype)
    with get_default_graph().name_scope(name or "random_gamma"):
        shape = convert_to_tensor(shape, name="shape", preferred_dtype=dtypes.int32)
        alpha = convert_to_tensor(alpha, dtype, name="alpha")
        beta = convert_to_tensor(1 if beta is None else beta, dtype, name="beta")
        alpha = F.AddV2(alpha, zeros_like(beta), name="add")  # broadcast
        samples = F.RandomGamma(shape, alpha, **seed_attributes(seed))
        scaled = F.RealDiv(samples, beta, name="truediv")
        return F.Maximum(np.finfo(dtype.as_numpy_dtype).tiny, scaled)


def random_poisson(
    lam: Any, shape: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Samples [*shape, *lam.shape] of Poisson distributions with the rates `lam`."""
    with get_default_graph().name_scope(name or "random_poisson"):
        shape = convert_to_tensor(shape, name="shape", preferred_dtype=dtypes.int32)
        return random_poisson_v2_op(shape, lam, dtype=dtypes.as_dtype(dtype), **seed_attributes(seed))
