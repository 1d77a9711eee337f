"""Random values of several distributions, and the seeds of all that is random.

An op's seed attributes come from the graph's seed and the op's own (`get_seed`). With seeds, an op gives the
same sequence in every new session, its own for each op and continued from step to step; without, one that
differs from session to session. The sequences are not TensorFlow's. The state is a `torch.Generator` of the
session, shared by all plans that run the op.

>>> generator_seed(87654321, 5) == generator_seed(87654321, 5) != generator_seed(87654321, 6)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from flowstone.framework import dtypes, errors
from flowstone.framework.graph_operation import Operation
from flowstone.framework.kernel import CPU, GPU, Call, Environment, Kernel, KernelFactory
from flowstone.framework.node import Node
from flowstone.framework.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.scope import get_default_graph
from flowstone.framework.shape import Dims
from flowstone.framework.tensor import Tensor, convert_to_tensor

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
SEEDS = "seed: int = 0 ; seed2: int = 0"
_DEFAULT_GRAPH_SEED = 87654321
_LARGEST = 2**31 - 1
_seeds_given: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

# ---- seeds


def set_random_seed(seed: int) -> None:
    """Sets the seed of the default graph,

    from which ops created later without a seed of their own derive theirs.
    """
    get_default_graph().seed = seed


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The pair of seeds for an op created now: (None, None) if neither the graph nor the op has one.

    Without a seed of its own an op of a seeded graph gets its number among such ops.
    """
    graph = get_default_graph()
    if graph.seed is None:
        if op_seed is None:
            return None, None
        seeds = (_DEFAULT_GRAPH_SEED, op_seed)
    else:
        if op_seed is None:
            op_seed = _seeds_given.get(graph, 0)
            _seeds_given[graph] = op_seed + 1
        seeds = (graph.seed, op_seed)
    first, second = (int(seed) % _LARGEST for seed in seeds)
    return (0, _LARGEST) if (first, second) == (0, 0) else (first, second)


def seed_attributes(op_seed: int | None) -> dict[str, Any]:
    """The seed attributes for an op created now."""
    first, second = get_seed(op_seed)
    return {"seed": first or 0, "seed2": second or 0}


def generator_seed(seed: int, seed2: int) -> int:
    """One number from two seeds, for `torch.Generator.manual_seed`."""
    state = np.random.SeedSequence([seed & 0xFFFFFFFFFFFFFFFF, seed2 & 0xFFFFFFFFFFFFFFFF])
    return int(state.generate_state(1, np.uint64)[0])


def generator_of(node: Node, env: Environment) -> torch.Generator:
    """The session's generator of a random node, seeded by its attributes; anew each session by (0, 0)."""

    def make() -> torch.Generator:
        generator = torch.Generator(device=env.device)
        seed, seed2 = node.attributes["seed"], node.attributes["seed2"]
        if seed or seed2:
            generator.manual_seed(generator_seed(seed, seed2))
        else:
            generator.seed()
        return generator

    generator: torch.Generator = env.state(node, make)
    return generator


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


def _fixed_shape(node: Node) -> Dims:
    value = node.constant(0)
    return None if value is None else value.tolist()


def _filled_kernel(function: Callable[..., torch.Tensor]) -> KernelFactory:
    """A kernel factory for `function(shape, generator=, dtype=, device=)`,

    called by the step itself if it can be.
    """

    def factory(node: Node, env: Environment) -> Kernel:
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


def _filled(name: str, function: Callable[..., torch.Tensor]) -> OpDeclaration:
    declaration = op(
        name,
        "shape: T -> output: dtype",
        f"{SEEDS} ; dtype: type in [half, bfloat16, float, double] ; T: type in [int32, int64]",
        stateful=True,
        host=["shape"],
        capturable=True,
        cost=10,
    )
    declaration.infer(_shape_from_input)
    declaration.kernel(CPU, GPU)(_filled_kernel(function))
    return declaration.not_differentiable()


random_uniform_op = _filled("RandomUniform", torch.rand)
random_standard_normal_op = _filled("RandomStandardNormal", torch.randn)
truncated_normal_op = _filled("TruncatedNormal", _truncated)

random_uniform_int_op = op(
    "RandomUniformInt",
    "shape: T, minval: Tout, maxval: Tout -> output: Tout",
    f"{SEEDS} ; Tout: type in [int32, int64] ; T: type in [int32, int64]",
    stateful=True,
    host=["shape", "minval", "maxval"],
    capturable=True,
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
    keywords = {
        "generator": generator_of(node, env),
        "dtype": node.attributes["Tout"].torch,
        "device": env.device,
    }

    def draw(shape: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        start, stop = int(low), int(high)
        if start >= stop:
            raise errors.InvalidArgumentError(None, None, f"Need minval < maxval, got {start} >= {stop}")
        return torch.randint(start, stop, shape.tolist(), **keywords)

    return draw


# ---- distributions with parameters


def _leading_shape(node: Node) -> Dims:
    leading, parameters = _shape_from_input(node), node.dims(1)
    return None if leading is None or parameters is None else (*leading, *parameters)


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
    "RandomGammaGrad", "alpha: T, sample: T -> output: T", T=(dtypes.float32, dtypes.float64)
)
random_gamma_grad.infer(lambda node: node.dims(1) if node.dims(0) is not None else None)
random_gamma_grad.no_gradient()


@random_gamma_grad.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return lambda alpha, sample: torch._standard_gamma_grad(
        *[t.contiguous() for t in torch.broadcast_tensors(alpha, sample)]
    )


def _poisson_kernel(node: Node, env: Environment) -> Kernel:
    generator, dtype = generator_of(node, env), node.attributes["dtype"].torch

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
        mean, deviation, low, high = [
            p.to(torch.float64).reshape(-1, *(1,) * (len(sizes) - 1)) for p in parameters
        ]
        uniform = torch.rand(sizes, generator=generator, dtype=torch.float64, device=mean.device)
        return normal_within(uniform, mean, deviation, low, high).to(parameters[0].dtype)

    return draw


def normal_within(
    uniform: torch.Tensor,
    mean: torch.Tensor,
    deviation: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
) -> torch.Tensor:
    """Normal values between `low` and `high`,

    by the inverse distribution function in the accurate (lower) tail.
    """
    if bool((low >= high).any()) or bool((deviation <= 0).any()):
        raise errors.InvalidArgumentError(
            None, None, "Invalid parameters: need minval < maxval and stdev > 0"
        )
    start, stop = (low - mean) / deviation, (high - mean) / deviation
    sign = torch.where(start > 0, -1.0, 1.0)
    start, stop = torch.where(sign > 0, start, -stop), torch.where(sign > 0, stop, -start)
    least, most = torch.special.ndtr(start), torch.special.ndtr(stop)
    values = torch.special.ndtri(least + uniform * (most - least)).clamp(min=start, max=stop)
    result: torch.Tensor = values * sign * deviation + mean
    return result.clamp(min=low, max=high)


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
        return F.AddV2(F.Mul(values, stddev, name="mul"), mean, name=scope)


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
        starts_at_0 = isinstance(minval, int) and minval == 0
        ends_at_1 = isinstance(maxval, int) and maxval == 1
        if dtype.is_integer or not (starts_at_0 and ends_at_1):
            minval = convert_to_tensor(minval, dtype, name="min")
            maxval = convert_to_tensor(maxval, dtype, name="max")
        if dtype.is_integer:
            return random_uniform_int_op(shape, minval, maxval, name=scope, **seed_attributes(seed))
        values = random_uniform_op(shape, dtype=dtype, **seed_attributes(seed))
        if starts_at_0:
            return values if ends_at_1 else F.Mul(values, maxval)
        return F.AddV2(F.Mul(values, F.Sub(maxval, minval, name="sub"), name="mul"), minval, name=scope)


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
        alpha = F.BroadcastTo(alpha, F.BroadcastArgs(F.Shape(alpha), F.Shape(beta)))
        samples = F.RandomGamma(shape, alpha, **seed_attributes(seed))
        least = convert_to_tensor(np.finfo(dtype.as_numpy_dtype).tiny, dtype, name="Maximum/x")
        return F.Maximum(least, F.RealDiv(samples, beta, name="truediv"))


def random_poisson(
    lam: Any, shape: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Samples [*shape, *lam.shape] of Poisson distributions with the rates `lam`."""
    with get_default_graph().name_scope(name or "random_poisson"):
        shape = convert_to_tensor(shape, name="shape", preferred_dtype=dtypes.int32)
        return random_poisson_v2_op(shape, lam, dtype=dtypes.as_dtype(dtype), **seed_attributes(seed))
