"""Seeds of random ops, and the sequences that they begin.

An op's seed attributes come from the graph's seed and the op's own (`get_seed`).
With seeds, an op gives the same sequence in every new session, its own for each op and continued from step to
step; without, one that differs from session to session. The state belongs to the session, shared by all plans
that run the op: a `torch.Generator`; or on a CPU, for the ops that ask for it, a `SeededSequence`, whose
numbers are TensorFlow's own. Where no seed asks for those, an op has such a sequence if machine code draws
its numbers, in half to a tenth of the time that a generator takes.

>>> generator_seed(87654321, 5) == generator_seed(87654321, 5) != generator_seed(87654321, 6)
True
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import Environment, FunctionCall
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.ops.randomness.philox import State, has_code

__all__ = [
    "BLOCKS_OF_A_NUMBER",
    "HOW",
    "SEEDS",
    "OwnPlaces",
    "SeededSequence",
    "first_state",
    "fresh_seed",
    "generator_of",
    "get_seed",
    "own_sequence",
    "salted_seed",
    "seed_attributes",
    "seeds_of",
    "sequence_of",
    "set_random_seed",
]

SEEDS = "seed: int = 0 ; seed2: int = 0"
_DEFAULT_GRAPH_SEED = 87654321
_LARGEST = 2**31 - 1
BLOCKS_OF_A_NUMBER = 256
"""How many a sequence leaves for each number that is drawn."""
HOW = {
    "RandomUniform": "uniform",
    "RandomStandardNormal": "normal",
    "TruncatedNormal": "truncated",
    "RandomUniformInt": "integers",
}
"""What machine code draws for an op."""
_WHOLE = 1 << 64
_state: Callable[[tuple[int, int]], State] = functools.partial(tuple.__new__, State)  # in half of the time
_random_bytes = os.urandom


def set_random_seed(seed: int) -> None:
    """Sets the seed of the default graph,

    from which ops created later without a seed of their own derive theirs.
    """
    get_default_graph().seed = seed


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The pair of seeds for an op created now: (None, None) if neither the graph nor the op has one.

    Without a seed of its own an op of a seeded graph gets the number of nodes that the graph has had, as in
    TensorFlow 1; in 2.4 and later it is its number among such ops.
    """
    graph = get_default_graph()
    if graph.seed is None:
        if op_seed is None:
            return None, None
        seeds = (_DEFAULT_GRAPH_SEED, op_seed)
    else:
        if op_seed is None:
            op_seed = graph.version
        seeds = (graph.seed, op_seed)
    first, second = (int(seed) % _LARGEST for seed in seeds)
    return (0, _LARGEST) if (first, second) == (0, 0) else (first, second)


def seed_attributes(op_seed: int | None) -> dict[str, Any]:
    """The seed attributes for an op created now."""
    first, second = get_seed(op_seed)
    return {"seed": first or 0, "seed2": second or 0}


def seeds_of(numbers: Sequence[Any]) -> tuple[int, int]:
    """Two seeds; random ones if both are 0."""
    first, second = (int(number) for number in numbers)
    if first or second:
        return first, second
    return fresh_seed(), fresh_seed()


def fresh_seed() -> int:
    """64 random bits, for numbers that no seed is given for: of all of them, this is the only source."""
    return int.from_bytes(_random_bytes(8), "little")


def salted_seed(seed: int | None, salt: str) -> int:
    """Another seed that depends on this one and a word."""
    return int(hashlib.md5(f"{seed}{salt}".encode()).hexdigest()[:8], 16) & _LARGEST


def first_state(seed: int, seed2: int) -> State:
    """Where the sequence of two seeds begins: they are the key and the upper half of the counter."""
    return State(seed % _WHOLE, (seed2 % _WHOLE) << 64)


def generator_seed(seed: int, seed2: int) -> int:
    """One number from two seeds, for `torch.Generator.manual_seed`."""
    state = np.random.SeedSequence([seed & 0xFFFFFFFFFFFFFFFF, seed2 & 0xFFFFFFFFFFFFFFFF])
    return int(state.generate_state(1, np.uint64)[0])


def generator_of(node: Node, env: Environment) -> torch.Generator:
    """The session's generator of a random node, seeded by its attributes; anew each session by (0, 0)."""

    def make() -> torch.Generator:
        generator = torch.Generator(device=env.device)
        seed, seed2 = node.attributes["seed"], node.attributes["seed2"]
        generator.manual_seed(generator_seed(seed, seed2) if seed or seed2 else fresh_seed())
        return generator

    generator: torch.Generator = env.state(node, make)
    return generator


class _Caller(threading.local):
    """Of each thread: by sequence, the counter at which it stands for the function that runs."""

    places: dict[SeededSequence, int] | None = None


_caller = _Caller()


class OwnPlaces:
    """A function whose seeded operations begin their sequences here, and go on at its next call.

    In a function that has such places, those are its own too.
    """

    __slots__ = ("_function", "_is_inner", "_places")

    def __init__(self, function: FunctionCall) -> None:
        places = _caller.places
        self._function, self._is_inner = function, places is not None
        self._places: dict[SeededSequence, int] = {} if places is None else places

    def __call__(self, step: Any, *arguments: Any) -> Sequence[Any]:
        before, _caller.places = _caller.places, self._places
        try:
            return self._function(step, *arguments)
        finally:
            _caller.places = before

    def apart(self) -> OwnPlaces:
        """The function with places of its own, all at the beginning."""
        return self if self._is_inner else OwnPlaces(self._function)


class SeededSequence:
    """Where a sequence of Philox stands, which two seeds begin; several threads may draw from it.

    Each run draws from where the one before has left 256 blocks for each of its numbers, or as many as it
    says. Where `OwnPlaces` call, it begins anew for each of them, unless chance gave the seeds.
    """

    def __init__(self, seed: int, seed2: int, by_chance: bool = False) -> None:
        self._key, self._first = first_state(seed, seed2)
        self._shared = {self: self._first}
        self._by_chance = by_chance
        self._lock = threading.Lock()

    def _places(self) -> dict[SeededSequence, int]:
        return self._shared if _caller.places is None or self._by_chance else _caller.places

    def take(self, count: int) -> State:
        """The state from which the next `count` numbers are drawn."""
        return self.take_blocks(count * BLOCKS_OF_A_NUMBER)

    def take_blocks(self, count: int) -> State:
        """The state from which something is drawn that so many blocks are left for."""
        places = self._places()
        with self._lock:
            counter = places.get(self, self._first)
            places[self] = (counter + count) % (1 << 128)
        return _state((self._key, counter))

    def state(self) -> State:
        """Where it stands."""
        return State(self._key, self._places().get(self, self._first))

    def move(self, before: State, after: int) -> bool:
        """Sets the counter of a sequence that still stands where it stood; whether it did."""
        places = self._places()
        with self._lock:
            stands = places.get(self, self._first) == before.counter
            if stands:
                places[self] = after
            return stands


def sequence_of(node: Node, env: Environment) -> SeededSequence | None:
    """The session's sequence of a random node; None where a generator draws: on another device than a CPU,
    and without seeds and machine code."""
    seeds = node.attributes["seed"], node.attributes["seed2"]
    if env.device.type != "cpu" or not (any(seeds) or _has_code(node)):
        return None
    return own_sequence(node, env)


def _has_code(node: Node) -> bool:
    """Whether machine code draws a node's numbers: the same in each plan, since it depends on the process and
    the node."""
    if node.type == "Multinomial":
        return has_code("uniform", torch.float64)  # by which it chooses
    kind = node.dtype(0).torch
    return node.type in HOW and kind is not None and has_code(HOW[node.type], kind)


def own_sequence(node: Node, env: Environment) -> SeededSequence:
    """The session's sequence of a random node of a CPU; without seeds, one that chance begins."""
    seeds = node.attributes["seed"], node.attributes["seed2"]
    sequence: SeededSequence = env.state(node, lambda: SeededSequence(*seeds_of(seeds), not any(seeds)))
    return sequence
