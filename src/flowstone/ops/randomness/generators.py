"""Random generators whose state is a variable of the graph: `tf.random.Generator`.

The state is the counter in two int64 numbers and then the key; every value takes 256 blocks of it. Values are
TensorFlow's own for the same state. Draws of one generator that shall come in an order need control
dependencies between them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F, OpDeclaration
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.variables.resource_variable import ResourceVariable

__all__ = ["Algorithm", "Generator", "create_rng_state", "get_global_generator", "set_global_generator"]

_GLOBAL = "_global_random_generator"
_WORD = 64


class Algorithm(enum.Enum):
    """How a generator makes random bits. Draws know Philox; `AUTO_SELECT` is Philox, too."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


_STATE_SIZES = {Algorithm.PHILOX: 3, Algorithm.THREEFRY: 2, Algorithm.AUTO_SELECT: 3}


def _algorithm(alg: Any) -> Algorithm:
    """The algorithm of a member, a name or a number."""
    if isinstance(alg, str):
        if alg in ("philox", "threefry", "auto_select"):
            return Algorithm[alg.upper()]
    elif isinstance(alg, Algorithm):
        return alg
    elif isinstance(alg, int | np.integer) and int(alg) in (1, 2, 3):
        return Algorithm(int(alg))
    raise ValueError(
        f"Argument `alg` got unsupported value {alg}. Supported values are philox (1), threefry (2) and "
        "auto_select (3)."
    )


def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """A generator's state, int64 [3] ([2] of ThreeFry), of a seed.

    The words of 64 bits of an int, or the first numbers of an array or tensor with zeros before them.
    `alg`: an `Algorithm`, its name or its number.
    """
    size = _STATE_SIZES[_algorithm(alg)]
    if isinstance(seed, int):
        words = [(seed >> _WORD * i) % (1 << _WORD) for i in range(size)]
        return convert_to_tensor(np.array(words, np.uint64).view(np.int64))
    seed = F.Cast(convert_to_tensor(seed), DstT=dtypes.int64)
    first = F.Reshape(seed, [-1])[:size]
    missing = F.Maximum(F.Sub(size, F.Size(first)), 0)
    return F.ConcatV2([F.Fill(F.Reshape(missing, [1]), np.int64(0)), first], 0)


class Generator:
    """A generator of random values whose state is the variable `state`, initialised as all others are.

    Made by `from_seed`, `from_state`, `from_key_counter`, `from_non_deterministic_state`; or as a copy of
    `copy_from`, or of a `state` with its `alg`.
    """

    _algorithm: Algorithm

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is not None:
            if state is not None or alg is not None:
                raise AssertionError("With copy_from, neither state nor alg may be given.")
            self._algorithm, initial = copy_from._algorithm, copy_from.state.initialized_value()
        elif state is None or alg is None:
            raise AssertionError("A Generator needs copy_from, or state and alg.")
        else:
            self._algorithm = _algorithm(alg)
            initial = convert_to_tensor(state, dtypes.int64)
        size = _STATE_SIZES[self._algorithm]
        if not initial.get_shape().is_compatible_with([size]):
            raise ValueError(f"Shapes {initial.get_shape()} and [{size}] are incompatible")
        with get_default_graph().name_scope("random_generator"):
            self._state = ResourceVariable(initial, trainable=False, dtype=dtypes.int64, name="StateVar")

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """A generator with this state: int64 [3] ([2] of ThreeFry)."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator with the state that `create_rng_state` makes of a seed; by Philox if `alg` is None."""
        alg = Algorithm.PHILOX if alg is None else _algorithm(alg)
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """A generator with this key, a scalar, and this counter: a vector of two ([1] of ThreeFry)."""
        return cls(state=_joined(key, counter), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator with a state from the machine's source of randomness, another in each session."""
        alg = Algorithm.PHILOX if alg is None else _algorithm(alg)
        return cls(state=F.NonDeterministicInts([_STATE_SIZES[alg]], dtype=dtypes.int64), alg=alg)

    # ---- the state

    @property
    def state(self) -> ResourceVariable:
        """The variable that holds it."""
        return self._state

    @property
    def algorithm(self) -> int:
        """The number of the algorithm."""
        return int(self._algorithm.value)

    @property
    def key(self) -> Tensor:
        """The key: int64, a scalar."""
        return self._state.read_value()[_STATE_SIZES[self._algorithm] - 1]

    def reset(self, state: Any) -> Operation:
        """Returns an operation that sets the state."""
        assigned: Operation = self._state.assign(convert_to_tensor(state, dtypes.int64)).op
        return assigned

    def reset_from_seed(self, seed: Any) -> Operation:
        """Returns an operation that sets the state to that of a seed."""
        return self.reset(create_rng_state(seed, self._algorithm))

    def reset_from_key_counter(self, key: Any, counter: Any) -> Operation:
        """Returns an operation that sets key and counter."""
        return self.reset(_joined(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """Skips so many values; the state before, int64."""
        return F.RngReadAndSkip(
            self._state.handle, convert_to_tensor(self.algorithm, dtypes.int32), _unsigned(delta)
        )

    # ---- values

    def normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Normal values of any floating-point type; `mean` and `stddev` are broadcast."""
        declaration = F.StatelessRandomNormalV2
        return self._scaled(declaration, name or "stateful_normal", shape, mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Normal values within two deviations of `mean`."""
        declaration = F.StatelessTruncatedNormalV2
        return self._scaled(declaration, name or "truncated_normal", shape, mean, stddev, dtype)

    def uniform(
        self,
        shape: Any,
        minval: Any = 0,
        maxval: Any = None,
        dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Values of [minval, maxval).

        `maxval` is 1 for floating point if None. Of integers both bounds must be given, or be None for all
        numbers of the type; else ValueError.
        """
        dtype = dtypes.as_dtype(dtype)
        if dtype.is_integer:
            if (minval is None) != (maxval is None):
                raise ValueError(
                    f"For integer dtype {dtype}, minval and maxval must be both `None` or both "
                    f"non-`None`; got minval={minval} and maxval={maxval}"
                )
            if minval is None:
                return self.uniform_full_int(shape, dtype, name or "stateful_uniform")
        elif maxval is None:
            maxval = 1
        with get_default_graph().name_scope(name or "stateful_uniform") as scope:
            shape = _sizes(shape)
            low = convert_to_tensor(minval, dtype, name="min")
            high = convert_to_tensor(maxval, dtype, name="max")
            if dtype.is_integer:
                return self._draw(F.StatelessRandomUniformIntV2, shape, low, high, name=scope)
            values = self._draw(F.StatelessRandomUniformV2, shape, dtype=dtype)
            return F.Add(F.Mul(values, F.Sub(high, low)), low, name=scope)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: str | None = None) -> Tensor:
        """Values of all numbers of an integer type of 32 or 64 bits."""
        with get_default_graph().name_scope(name or "stateful_uniform_full_int") as scope:
            kind = dtypes.as_dtype(dtype)
            return self._draw(F.StatelessRandomUniformFullIntV2, _sizes(shape), dtype=kind, name=scope)

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32, name: str | None = None
    ) -> Tensor:
        """How many of `counts` trials succeed with the probability `probs`, two tensors of one type.

        `shape` ends with the shape of `counts` and `probs` together. Returns numbers of `dtype`.
        """
        with get_default_graph().name_scope(name or "binomial") as scope:
            counts = convert_to_tensor(counts, None if isinstance(counts, Tensor) else dtypes.float32)
            probs = convert_to_tensor(probs, counts.dtype, name="probs")
            return F.StatefulRandomBinomial(
                self._state.handle,
                np.int64(self.algorithm),
                _sizes(shape),
                counts,
                probs,
                dtype=dtypes.as_dtype(dtype),
                name=scope,
            )

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds of stateless operations: int64 [2, count], one a column."""
        numbers = self.uniform_full_int([count], dtypes.int64)
        return F.Pack([numbers, F.ZerosLike(numbers)], name="stack")

    def split(self, count: int = 1) -> list[Generator]:
        """Raises NotImplementedError: variables that the values of others initialise need eager execution."""
        raise NotImplementedError("Generator.split needs eager execution; use make_seeds and from_seed.")

    def _scaled(
        self, declaration: OpDeclaration, label: str, shape: Any, mean: Any, stddev: Any, dtype: Any
    ) -> Tensor:
        dtype = dtypes.as_dtype(dtype)
        with get_default_graph().name_scope(label) as scope:
            shape = _sizes(shape)
            center = convert_to_tensor(mean, dtype, name="mean")
            width = convert_to_tensor(stddev, dtype, name="stddev")
            values = self._draw(declaration, shape, dtype=dtype)
            return F.Add(F.Mul(values, width), center, name=scope)

    def _draw(
        self, declaration: Callable[..., Tensor], shape: Tensor, *bounds: Tensor, **keywords: Any
    ) -> Tensor:
        """What an operation of key, counter and algorithm draws; the state is left behind it."""
        state = self.skip(F.Prod(shape, [0]))
        last = _STATE_SIZES[self._algorithm] - 1
        counter = F.Bitcast(state[:last], type=dtypes.uint64)
        key = F.Bitcast(state[last : last + 1], type=dtypes.uint64)
        algorithm = np.int32(self.algorithm)
        return declaration(shape, key, counter, algorithm, *bounds, **keywords)


def _joined(key: Any, counter: Any) -> Tensor:
    """The state of a key and a counter."""
    counter = F.Reshape(_signed(counter), [-1])
    return F.ConcatV2([counter, F.Reshape(_signed(key), [1])], 0)


def _signed(value: Any) -> Tensor:
    return F.Cast(convert_to_tensor(value), DstT=dtypes.int64)


def _unsigned(value: Any) -> Tensor:
    if isinstance(value, int):
        return convert_to_tensor(np.uint64(value % (1 << _WORD)))
    return F.Cast(convert_to_tensor(value), DstT=dtypes.uint64)


def _sizes(shape: Any) -> Tensor:
    return convert_to_tensor(shape, None if isinstance(shape, Tensor) else dtypes.int32, name="shape")


def get_global_generator() -> Generator:
    """The default graph's generator, made when first asked for, with a non-deterministic state."""
    held = vars(get_default_graph())
    if _GLOBAL not in held:
        held[_GLOBAL] = Generator.from_non_deterministic_state()
    generator: Generator = held[_GLOBAL]
    return generator


def set_global_generator(generator: Generator) -> None:
    """Makes `generator` what `get_global_generator` gives in the default graph."""
    vars(get_default_graph())[_GLOBAL] = generator
