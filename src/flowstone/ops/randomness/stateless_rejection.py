"""Gamma, Poisson, binomial and truncated normal values, and shuffles, that are a function of a seed alone.

All but the truncated normal values are TensorFlow's own for the same seed (`rejection_streams.py`): of those
the distribution is, but not the numbers. The shape of a result ends with that of its parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.containers import Variable
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import merge
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.generator_states import advance
from flowstone.ops.randomness.rejection_streams import RESERVED, binomial, cast, gamma_values, poisson_values
from flowstone.ops.randomness.stateless import sizes_of, state_of_key, state_of_seed
from flowstone.ops.randomness.truncated_normals import normal_within

__all__ = [
    "stateless_binomial",
    "stateless_gamma",
    "stateless_parameterized_truncated_normal",
    "stateless_poisson",
]

_SEED = "Tseed: type in [int32, int64] = int64"
_NUMBERS = "[half, float, double, int32, int64]"
_RESERVED_GAPS = 42  # for a binomial value with few of the rarer outcome

Draw = Callable[..., torch.Tensor]
"""What gives values [samples, n] for a state, parameters of float64 [n] each, and how many samples."""


def _infer(node: Node) -> Shapes:
    """The shape that input 0 gives, checked with the seed."""
    dims = node.dims(0)
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    if node.declaration.inputs[1].name == "seed":
        merge(node.dims(1), (2,))
    return node.constant_dims(0)


def _parameters(sizes: list[int], parameters: tuple[torch.Tensor, ...]) -> tuple[int, list[torch.Tensor]]:
    """How many values every parameter has, and the parameters, broadcast, in float64."""
    together = torch.broadcast_tensors(*parameters)
    dims = list(together[0].shape)
    if dims != sizes[len(sizes) - len(dims) :]:
        raise errors.InvalidArgumentError(
            None, None, f"Shape passed in must end with broadcasted shape: {sizes} does not with {dims}"
        )
    return math.prod(sizes[: len(sizes) - len(dims)]), [p.reshape(-1).double() for p in together]


def _set_kernel(declaration: OpDeclaration, draw: Draw, keys: int = 1) -> None:
    declaration.infer(_infer)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        kind = node.attributes["dtype"].torch
        state_of: Callable[..., philox.State] = state_of_seed if keys == 1 else state_of_key

        def values(shape: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
            sizes, state = sizes_of(shape), state_of(*rest[:keys])
            samples, parameters = _parameters(sizes, rest[keys:])
            return cast(draw(state, *parameters, samples).reshape(sizes), kind)

        return values


def _one_by_one(draw: Draw) -> Draw:
    """Of a function of a state, the numbers of values and their parameters, one for each value."""

    def drawn(state: philox.State, *given: Any) -> torch.Tensor:
        *parameters, samples = given
        each = [p.repeat_interleave(samples) for p in parameters]
        places = torch.arange(len(each[0]), device=each[0].device)
        return draw(state, places, *each).view(len(parameters[0]), samples).t()

    return drawn


def _binomial(
    state: philox.State, places: torch.Tensor, counts: torch.Tensor, probs: torch.Tensor
) -> torch.Tensor:
    return binomial(state, _RESERVED_GAPS * places, RESERVED * places, counts, probs)


def _truncated(state: philox.State, places: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
    """By the inverse distribution function of one uniform number each."""
    uniform = philox.uniform(state, len(places), torch.float64, places.device)
    return normal_within(uniform, *parameters)


gamma_op = op(
    "StatelessRandomGammaV2",
    "shape: T, seed: Tseed, alpha: dtype -> output: dtype",
    f"dtype: type in [half, float, double] ; T: type in [int32, int64] ; {_SEED}",
    host=["shape", "seed"],
    capturable=False,
    cost=200,
)
gamma_v3_op = op(
    "StatelessRandomGammaV3",
    "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype -> output: dtype",
    "dtype: type in [half, float, double] ; shape_dtype: type in [int32, int64] = int32",
    host=["shape", "key", "counter", "alg"],
    capturable=False,
    cost=200,
)
poisson_op = op(
    "StatelessRandomPoisson",
    "shape: T, seed: Tseed, lam: Rtype -> output: dtype",
    f"Rtype: type in {_NUMBERS} ; dtype: type in {_NUMBERS} ; T: type in [int32, int64] ; {_SEED}",
    host=["shape", "seed"],
    capturable=False,
    cost=200,
)
binomial_op = op(
    "StatelessRandomBinomial",
    "shape: S, seed: Tseed, counts: T, probs: T -> output: dtype",
    f"S: type in [int32, int64] ; {_SEED} ; "
    f"T: type in {_NUMBERS} = double ; dtype: type in {_NUMBERS} = int64",
    host=["shape", "seed"],
    capturable=False,
    cost=200,
)
truncated_normal_op = op(
    "StatelessParameterizedTruncatedNormal",
    "shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
    f"S: type in [int32, int64] ; {_SEED} ; dtype: type in [half, float, double]",
    host=["shape", "seed"],
    capturable=False,
    cost=200,
)
_set_kernel(gamma_op, gamma_values)
_set_kernel(gamma_v3_op, gamma_values, keys=3)
_set_kernel(poisson_op, poisson_values)
_set_kernel(binomial_op, _one_by_one(_binomial))
_set_kernel(truncated_normal_op, _one_by_one(_truncated))

stateful_binomial_op = op(
    "StatefulRandomBinomial",
    "resource: resource, algorithm: int64, shape: S, counts: T, probs: T -> output: dtype",
    f"S: type in [int32, int64] ; T: type in {_NUMBERS} = double ; dtype: type in {_NUMBERS} = int64",
    stateful=True,
    mutates=[0],
    host=["algorithm", "shape"],
    cost=200,
)


@stateful_binomial_op.infer
def _(node: Node) -> Shapes:
    merge(node.dims(1), ())
    return node.constant_dims(2)


@stateful_binomial_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    kind, draw = node.attributes["dtype"].torch, _one_by_one(_binomial)

    def values(
        variable: Variable, algorithm: torch.Tensor, shape: torch.Tensor, *parameters: torch.Tensor
    ) -> torch.Tensor:
        sizes = sizes_of(shape)
        samples, given = _parameters(sizes, parameters)
        state = advance(variable, algorithm, math.prod(sizes))
        return cast(draw(state, *given, samples).reshape(sizes), kind)

    return values


for _declaration in (stateful_binomial_op, poisson_op, binomial_op, truncated_normal_op):
    _declaration.not_differentiable()


def _gamma_gradients(op: Operation, dy: Tensor) -> Gradients:
    """By implicit differentiation of the samples, summed over the samples of each parameter."""
    shape, alpha = op.inputs[0], op.inputs[-1]
    samples = F.Range(0, F.Sub(F.Size(shape), F.Rank(alpha)), 1, name="range")
    slope = F.RandomGammaGrad(alpha, op.outputs[0])
    dalpha = F.Sum(F.Mul(dy, slope), samples)
    return *[None] * (len(op.inputs) - 1), dalpha


gamma_op.gradient(_gamma_gradients)
gamma_v3_op.gradient(_gamma_gradients)

# ---- shuffles

shuffle_op = op(
    "StatelessShuffle",
    "value: T, key: uint64, counter: uint64, alg: int32 -> output: T",
    T=None,
    host=["key", "counter", "alg"],
    capturable=False,
    cost=40,
)
shuffle_op.infer(lambda node: node.dims(0))
shuffle_op.no_gradient()


@shuffle_op.fold
def _(node: Node) -> Equal:
    dims = node.dims(0)
    return node.inputs[0] if dims == () or (dims and dims[0] in (0, 1)) else None


@shuffle_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def shuffle(value: Any, *key: torch.Tensor) -> Any:
        state = state_of_key(*key)
        if value.ndim == 0 or value.shape[0] < 2:
            return value.clone() if isinstance(value, torch.Tensor) else value.copy()
        order = philox.permutation(state, value.shape[0])
        return value[order] if not isinstance(value, torch.Tensor) else value[order.to(value.device)]

    return shuffle


# ---- public functions


def _shape(shape: Any) -> Tensor:
    return convert_to_tensor(shape, None if isinstance(shape, Tensor) else dtypes.int32, name="shape")


def stateless_binomial(
    shape: Any,
    seed: Any,
    counts: Any,
    probs: Any,
    output_dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Numbers of successes among `counts` trials of probability `probs`, a function of `seed` [2].

    `shape` ends with the shape that `counts` and `probs` broadcast to; else InvalidArgumentError.
    """
    with get_default_graph().name_scope(name or "stateless_random_binomial"):
        size = _shape(shape)
        likely = convert_to_tensor(probs, name="probs")
        trials = convert_to_tensor(counts, likely.dtype, name="counts")
        return binomial_op(size, seed, trials, likely, dtype=dtypes.as_dtype(output_dtype))


def stateless_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Values of gamma distributions of shape `alpha` and rate `beta` (1 if None), a function of `seed` [2].

    `shape` ends with the shape that `alpha` and `beta` broadcast to; else InvalidArgumentError.
    """
    dtype = dtypes.as_dtype(dtype)
    with get_default_graph().name_scope(name or "stateless_random_gamma"):
        size = _shape(shape)
        alpha = convert_to_tensor(alpha, dtype, name="alpha")
        rate = convert_to_tensor(1 if beta is None else beta, dtype, name="beta")
        both = F.BroadcastArgs(F.Shape(alpha), F.Shape(rate))
        values = gamma_op(size, seed, F.BroadcastTo(alpha, both))
        smallest = float(torch.finfo(dtype.torch).tiny)
        return F.Maximum(convert_to_tensor(smallest, dtype), F.RealDiv(values, rate))


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Values of Poisson distributions of mean `lam`, a function of `seed` [2].

    `shape` ends with that of `lam`; else InvalidArgumentError.
    """
    with get_default_graph().name_scope(name or "stateless_random_poisson"):
        return poisson_op(_shape(shape), seed, lam, dtype=dtypes.as_dtype(dtype))


def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:
    """Normal values between `minvals` and `maxvals`, a function of `seed` [2].

    `shape` ends with the shape that the four broadcast to. InvalidArgumentError unless deviations are
    positive and each least value is below the greatest.
    """
    with get_default_graph().name_scope(name or "stateless_parameterized_truncated_normal"):
        size = _shape(shape)
        names = {"means": means, "stddevs": stddevs, "minvals": minvals, "maxvals": maxvals}
        return truncated_normal_op(size, seed, *(convert_to_tensor(v, name=k) for k, v in names.items()))
