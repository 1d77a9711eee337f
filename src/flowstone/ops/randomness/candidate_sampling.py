"""Candidate sampling: a few classes drawn from many, for losses that cannot look at all of them.

A sampler takes the true classes, int64 [batch, num_true], of which only the number and the expected counts
matter, and gives

- ``sampled_candidates``, int64 [num_sampled], shared by the whole batch; all different if `unique`;
- ``true_expected_count``, float32 [batch, num_true], and ``sampled_expected_count``, float32 [num_sampled]:
  how often each of these classes is in such a sample on average.

The samplers differ in the distribution (`flowstone.ops.randomness.class_distributions`): uniform, log-uniform
(Zipf's law), by fixed weights, by what true classes were seen so far, or simply all. Seeds act as in
`flowstone.ops.randomness.random`: the samples are TensorFlow's own. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, X0, X1, X2, Call, Environment, Kernel, KernelFactory
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.io.file_system import read_bytes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.randomness.class_distributions import (
    ClassDistribution,
    Draws,
    Learned,
    LogUniform,
    Uniform,
    Weighted,
    expectation,
    has_table,
)
from flowstone.ops.randomness.op_seeds import SEEDS, own_sequence, seed_attributes

__all__ = [
    "all_candidate_sampler",
    "compute_accidental_hits",
    "fixed_unigram_candidate_sampler",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "uniform_candidate_sampler",
]

Sample = tuple[Tensor, Tensor, Tensor]
_Sampling: TypeAlias = "Callable[[torch.Tensor], tuple[torch.Tensor, ...]]"

_OUTPUTS = "sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float"
_COUNTS = "num_true: int >= 1 ; num_sampled: int >= 1 ; unique: bool"
_RANGE = f"{_COUNTS} ; range_max: int >= 1"
_VOCABULARY = (
    "vocab_file: string = '' ; distortion: float = 1 ; num_reserved_ids: int = 0 ; "
    "num_shards: int >= 1 = 1 ; shard: int >= 0 = 0 ; unigrams: list(float) = []"
)


# ---- samplers


def _sampler(name: str, attributes: str, kernel: KernelFactory) -> OpDeclaration:
    """Declares the sampler whose factory is `kernel(node, env)`."""
    declaration = op(name, f"true_classes: int64 -> {_OUTPUTS}", f"{attributes} ; {SEEDS}", stateful=True)
    declaration.infer(_sample_shapes)
    declaration.kernel(CPU)(kernel)  # samples are small, and drawn by the host's generators
    return declaration.not_differentiable()


def _sample_shapes(node: Node) -> list[Dims]:
    dims = node.dims(0)
    if dims is not None and len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
    sampled = (node.attributes["num_sampled"],)
    return [sampled, (None if dims is None else dims[0], node.attributes["num_true"]), sampled]


def _sampling(node: Node, env: Environment, distribution: ClassDistribution) -> _Sampling:
    """The kernel that samples from `distribution`."""
    count, as_vector = node.attributes["num_sampled"], _vector_of_true_classes(node)
    sequence, unique = own_sequence(node, env), node.attributes["unique"]
    # What the session's plans share; the sequence has the place of the node's own name.
    expected_of, table = _shared(env, f"{node.name}/expectation", lambda: expectation(distribution))

    def make_draws() -> Draws:
        return Draws(distribution, sequence, count, unique, table)

    def sample(true_classes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        flat = as_vector(true_classes)
        sampled, tries, expected = _shared(env, f"{node.name}/draws", make_draws).next()
        if expected is None:
            expected = expected_of(sampled, count, tries)
        return sampled, expected_of(flat, count, tries).view(true_classes.shape), expected

    def checked_sample(true_classes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        _check_range(true_classes, distribution.size)
        return sample(true_classes)

    def sample_from_table(true_classes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        try:
            return sample(true_classes)
        except IndexError:
            _check_range(true_classes, distribution.size)
            raise

    return sample_from_table if has_table(distribution) else checked_sample


def _shared(env: Environment, key: str, make: Callable[[], Any]) -> Any:
    """The session's object of this key; made on first use."""
    return env.states.get(key) or env.states.setdefault(key, make())


def _vector_of_true_classes(node: Node) -> Callable[[torch.Tensor], torch.Tensor]:
    """What gives the true classes as a vector; InvalidArgumentError where they are not [any, num_true]."""
    num_true, dims = node.attributes["num_true"], node.dims(0)
    if dims is not None and dims[1] == num_true:
        return lambda true_classes: true_classes.reshape(-1)

    def checked(true_classes: torch.Tensor) -> torch.Tensor:
        if true_classes.dim() != 2:
            raise invalid("true_classes must be a matrix")
        if true_classes.shape[1] != num_true:
            raise invalid(
                f"true_classes must have num_true columns, expected: {true_classes.shape[1]} was: {num_true}"
            )
        return true_classes.reshape(-1)

    return checked


def _check_range(true_classes: torch.Tensor, size: int) -> None:
    """Raises InvalidArgumentError unless all classes are in [0, size)."""
    if true_classes.numel():
        least, largest = true_classes.aminmax()
        if int(least) < 0 or int(largest) >= size:
            wrong = next(k for k in true_classes.reshape(-1).tolist() if not 0 <= k < size)
            raise invalid(f"`true_candidate` out of range [0, {size}), received {wrong}")


uniform_op = _sampler(
    "UniformCandidateSampler",
    _RANGE,
    lambda node, env: _sampling(node, env, Uniform(node.attributes["range_max"])),
)
log_uniform_op = _sampler(
    "LogUniformCandidateSampler",
    _RANGE,
    lambda node, env: _sampling(node, env, LogUniform(node.attributes["range_max"])),
)


def _learning_kernel(node: Node, env: Environment) -> _Sampling:
    """Samples by what was seen in earlier steps of the session, then adds the true classes."""
    # The sequence has the place of the node's own name.
    states, key = env.states, f"{node.name}/seen"
    learned = states.get(key) or states.setdefault(key, Learned(node.attributes["range_max"]))
    sample = _sampling(node, env, learned)

    def sample_and_learn(true_classes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        sampled = sample(true_classes)
        learned.add(true_classes.reshape(-1))
        return sampled

    return sample_and_learn


learned_op = _sampler("LearnedUnigramCandidateSampler", _RANGE, _learning_kernel)
_sampler("ThreadUnsafeUnigramCandidateSampler", _RANGE, _learning_kernel)


def _fixed_kernel(node: Node, env: Environment) -> _Sampling:
    return _sampling(node, env, Weighted(unigram_weights(node.attributes)))


def unigram_weights(attributes: dict[str, Any]) -> np.ndarray:
    """The weights of FixedUnigramCandidateSampler's classes, float64 [range_max].

    Reserved ids have weight 0; the others' weights, given or the last column of the file's lines, are raised
    to the power `distortion`. Of all these, the shard has every `num_shards`-th. InvalidArgumentError where
    that is not one weight a class, NotFoundError for a file that is not there.
    """
    path, given = attributes["vocab_file"], attributes["unigrams"]
    if bool(path) == bool(given):
        word = "only provide one of vocab_file and" if path else "provide either vocab_file or"
        raise invalid(f"Must {word} unigrams.")
    weights = np.asarray(_file_weights(path) if path else given, np.float64) ** attributes["distortion"]
    weights = np.concatenate([np.zeros(attributes["num_reserved_ids"]), weights])
    weights = weights[attributes["shard"] :: attributes["num_shards"]]
    if len(weights) != attributes["range_max"]:
        raise invalid(f"range is {attributes['range_max']} must be equal to weights size  {len(weights)}")
    return weights


def _file_weights(path: str | bytes) -> list[float]:
    text = read_bytes(path).decode("utf-8")
    lines = [line for line in text.splitlines() if line.strip()]
    weights = []
    for line in lines:
        try:
            weights.append(float(line.rpartition(",")[2]))
        except ValueError:
            raise invalid(f"Wrong vocabulary format at line: {line}") from None
    return weights


fixed_op = _sampler("FixedUnigramCandidateSampler", f"{_RANGE} ; {_VOCABULARY}", _fixed_kernel)


def _all_kernel(node: Node, env: Environment) -> _Sampling:
    count, as_vector = node.attributes["num_sampled"], _vector_of_true_classes(node)

    def sample(true_classes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        _check_range(as_vector(true_classes), count)
        return torch.arange(count), torch.ones(true_classes.shape), torch.ones(count)

    return sample


all_op = _sampler("AllCandidateSampler", _COUNTS, _all_kernel)

# ---- accidental hits

accidental_hits_op = op(
    "ComputeAccidentalHits",
    "true_classes: int64, sampled_candidates: int64 -> indices: int32, ids: int64, weights: float",
    f"num_true: int ; {SEEDS}",
)
accidental_hits_op.not_differentiable()


@accidental_hits_op.infer
def _(node: Node) -> list[Dims]:
    true, sampled, num_true = node.dims(0), node.dims(1), node.attributes["num_true"]
    for dims, rank in ((true, 2), (sampled, 1)):
        if dims is not None and len(dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")
    if true is not None and true[1] not in (None, num_true):
        raise ValueError(f"Dimension must be {num_true} but is {true[1]}")
    return [(None,)] * 3


@accidental_hits_op.kernel(CPU)  # samples are small, and sets of the host tell them apart
def _(node: Node, env: Environment) -> Kernel:
    num_true = node.attributes["num_true"]
    lowest = -dtypes.float32.max

    def find(true_classes: torch.Tensor, sampled: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if true_classes.dim() != 2 or true_classes.shape[1] != num_true:
            raise invalid("true_candidates must be a batch_size * num_true matrix")
        if sampled.dim() != 1:
            raise invalid(
                "sampled_candidates must be a vector, which is typically an output from CandidateSampler"
            )
        places = {k: place for place, k in enumerate(sampled.tolist())}
        true = true_classes.reshape(-1).tolist()
        hits = [(i // num_true, places[k]) for i, k in enumerate(true) if k in places]
        rows = torch.tensor([row for row, _ in hits], dtype=torch.int32)
        columns = torch.tensor([column for _, column in hits], dtype=torch.int64)
        return rows, columns, torch.full((len(hits),), lowest)

    return find


mask_hits_op = op(
    "_MaskAccidentalHits",
    "logits: T, true_classes: int64, sampled_candidates: int64 -> masked: T",
    T=(dtypes.float32,),
)
mask_hits_op.infer(lambda node: node.dims(0))
mask_hits_op.not_differentiable()


@mask_hits_op.kernel(CPU)  # samples are small, and sets of the host tell them apart
def _(node: Node, env: Environment) -> Call:
    """The logits, [batch, candidates], plus the least float where a candidate is a true class of the row."""
    lowest = float(dtypes.float32.max) * -1
    of_true = node.static_shape(1)
    if of_true is not None and of_true[1] == 1:
        hits = Call(torch.eq, X1, X2)
    else:
        hits = Call(torch.any, Call(torch.eq, Call(torch.unsqueeze, X1, 2), X2), 1)
    masked = Call(torch.add, X0, hits, alpha=lowest)
    return masked.or_in_place(0, torch.Tensor.add_, X0, hits, alpha=lowest)


# ---- public functions


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """A sample of the classes below `range_max`, all equally likely.

    For `true_classes`, int64 [batch, num_true]: (sampled candidates, int64 [num_sampled]; expected counts of
    the true classes, float32 [batch, num_true], and of the sampled ones, float32 [num_sampled]).
    InvalidArgumentError in the step for classes out of range, or more unique samples than classes.
    """
    return _sample(uniform_op, true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max)


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """As `uniform_candidate_sampler`, by Zipf's law: P(k) = log((k + 2) / (k + 1)) / log(range_max + 1)."""
    return _sample(
        log_uniform_op, true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max
    )


def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """As `uniform_candidate_sampler`, by how often the session's earlier steps had a true class, plus one."""
    return _sample(learned_op, true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max)


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """As `uniform_candidate_sampler`, by weights: `unigrams`, or the last column of `vocab_file`'s lines.

    `distortion` is the power that weights are raised to (0: uniform); the first `num_reserved_ids` classes
    are never drawn. With shards, only every `num_shards`-th weight, from `shard` on, is a class.
    """
    given = {
        "range_max": range_max,
        "vocab_file": vocab_file,
        "distortion": distortion,
        "num_reserved_ids": num_reserved_ids,
        "num_shards": num_shards,
        "shard": shard,
        "unigrams": list(unigrams),
    }
    return _sample(fixed_op, true_classes, num_true, num_sampled, unique, seed, name, **given)


def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """All of `num_sampled` classes, each expected once: a sampled loss over these is the full one."""
    return _sample(all_op, true_classes, num_true, num_sampled, unique, seed, name)


def _sample(
    declaration: OpDeclaration,
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None,
    name: str | None,
    **attributes: Any,
) -> Sample:
    sample: Sample = declaration.several(
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        name=name,
        **attributes,
        **seed_attributes(seed),
    )
    return sample


def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """Where a sampled candidate is a true class: (rows, int32 [hits]; places among the candidates, int64
    [hits]; weights, float32 [hits], all the least float32).

    For `true_classes`, int64 [batch, num_true], and `sampled_candidates`, int64 [num_sampled]. Added to the
    logits at these places, the weights take the hits out of the loss.
    """
    hits: Sample = accidental_hits_op.several(
        true_classes, sampled_candidates, num_true=num_true, name=name, **seed_attributes(seed)
    )
    return hits
