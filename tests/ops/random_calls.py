"""Random programs of one call, made alike for flowstone and for TensorFlow.

A `Call` is a Python expression over `tf`, `np`, `op` (a raw operation by name) and its inputs ``a``, ``b``
..., each of which says how it is drawn and how much of its shape the graph knows. `random_call(seed)` makes
one: a public function from the recipes of `call_recipes`, or an op from the cases of `tables`, with other
element types, sizes, ranks and attributes. `answer(tf, op, call)` builds and runs it and says what came of
it:

- ``{"outputs": [[dtype, static shape, values]], "gradients": {input: values}}``; a static shape is a list,
  null where unknown; values are ``[shape, flat list]``;
- ``{"error": [stage, class]}``, the stage being "build" or "run";
- gradients are of all outputs that are differentiable, weighted by seeded numbers; or ``{"error": ...}``.

>>> one = random_call(3)
>>> random_call(3) == one, Call.from_json(one.to_json()) == one
(True, True)
"""

from __future__ import annotations

import dataclasses
import functools
import random
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

import op_cases
from op_cases import Case, Listed, Spec

Known = Any
"""What the graph knows of an input: "constant", a list of sizes (None where unknown), or None, nothing."""
FAMILIES = (
    "arrays",
    "convolution",
    "edit_distances",
    "elementwise",
    "fourier",
    "histograms",
    "image_boxes",
    "image_colours",
    "image_transforms",
    "images",
    "matrices",
    "neural_net",
    "pooling_forms",
    "reductions",
    "searching",
    "sets",
    "sparse",
    "sparse_arithmetic",
    "sparse_counts",
    "sparse_reductions",
    "sparse_tensors",
    "special_functions",
    "special_integrals",
)
DTYPES = [name for name in op_cases.NUMPY_DTYPES if name != "string"]
TOLERANCES = {"float64": 2e-6, "complex128": 2e-6, "float16": 2e-2, "bfloat16": 6e-2}

NO_KERNEL = "no kernel"
"""The class of TensorFlow's error where it declares an element type that it has no kernel for: with that, any
answer agrees.
"""


@dataclasses.dataclass(frozen=True)
class Argument:
    """An input of a call: how its values are drawn, and what the graph knows of its shape."""

    spec: Spec
    known: Known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Argument) and self.to_json() == other.to_json()

    def to_json(self) -> list[Any]:
        spec = self.spec
        values = np.asarray(spec.args[0]).tolist() if spec.kind == "literal" else list(spec.args)
        return [spec.kind, list(spec.shape), spec.dtype, values, self.known]

    @classmethod
    def from_json(cls, parts: Sequence[Any]) -> Argument:
        kind, shape, dtype, values, known = parts
        args = (np.array(values).reshape(shape),) if kind == "literal" else tuple(values)
        return cls(Spec(kind, tuple(shape), args, dtype), known)


@dataclasses.dataclass(frozen=True)
class Call:
    """An expression and its inputs by name."""

    expression: str
    inputs: dict[str, Argument]

    def to_json(self) -> dict[str, Any]:
        return {"call": self.expression, "inputs": {k: one.to_json() for k, one in self.inputs.items()}}

    @classmethod
    def from_json(cls, parts: dict[str, Any]) -> Call:
        return cls(parts["call"], {k: Argument.from_json(one) for k, one in parts["inputs"].items()})


class Draw:
    """The choices of one call: its element type, and the inputs drawn so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs: dict[str, Argument] = {}
        common = self.random.choice(("float32", "float32", "float64", "int32", "complex64"))
        self.dtype = common if self.chance(0.7) else self.random.choice(DTYPES)
        self.sizes = (0, 0, 1, 2, 3) if self.chance(0.2) else (1, 2, 2, 3, 3)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one_of(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def integer(self, low: int, high: int) -> int:
        """Of [low, high]."""
        return self.random.randint(low, high)

    def flag(self) -> bool:
        return self.chance(0.5)

    def shape(self, low: int = 0, high: int = 4) -> list[int]:
        """Sizes of a rank of [low, high]; small in high ranks."""
        rank = min(self.integer(low, high), self.integer(low, max(high, low)))
        return [self.random.choice(self.sizes) for _ in range(rank)]

    def size(self) -> int:
        return self.random.choice(self.sizes)

    def broadcastable(self, shape: Sequence[int]) -> list[int]:
        """A shape that broadcasts with this one, most often."""
        other = [size if self.chance(0.75) else 1 for size in shape]
        if self.chance(0.3) and other:
            other = other[self.integer(0, len(other)) :]
        if self.chance(0.1):
            other = [self.size(), *other]
        return [size if self.chance(0.98) else self.size() for size in other]

    def tensor(
        self, shape: Sequence[int], dtype: str | None = None, kind: str = "normal", args: Sequence[Any] = ()
    ) -> str:
        """The name of a new input; seldom of another type or rank than asked for."""
        dtype = self.random.choice(DTYPES) if self.chance(0.02) else dtype or self.dtype
        if self.chance(0.02):
            shape = self.shape()
        return self._add(Spec(kind, tuple(shape), tuple(args), dtype))

    def indices(self, shape: Sequence[int], limit: int, dtype: str | None = None) -> str:
        """A new input of integers below `limit`, seldom of others."""
        low, high = (0, max(limit, 1)) if self.chance(0.95) else (-2, limit + 2)
        return self.tensor(shape, dtype or self.one_of("int32", "int64"), "ints", (low, high))

    def values(self, values: Any, dtype: str | None = None) -> str:
        """These numbers: in the text of the call or as an input."""
        if self.chance(0.6):
            return repr(values)
        dtype = dtype or self.one_of("int32", "int32", "int32", "int64")
        return self._add(Spec("literal", np.shape(values), (values,), dtype))

    def known(self, shape: Sequence[int]) -> Known:
        chosen = self.one_of("constant", "full", "full", "partial", "partial", None)
        if chosen == "full":
            return list(shape)
        if chosen == "partial":
            return [None if self.flag() else size for size in shape]
        return chosen

    def axis(self, rank: int) -> int:
        """An axis, seldom beyond the rank."""
        if self.chance(0.04):
            return self.integer(-6, 6)
        return self.integer(-rank, rank - 1) if rank else self.one_of(0, -1)

    def axes(self, rank: int) -> Any:
        """None, an axis or several."""
        if self.chance(0.35):
            return None
        if self.chance(0.4):
            return self.axis(rank)
        several = self.random.sample(range(rank), self.integer(0, rank))
        return [axis - rank if self.chance(0.3) else axis for axis in several]

    def _add(self, spec: Spec) -> str:
        name = string.ascii_lowercase[len(self.inputs)]
        self.inputs[name] = Argument(spec, self.known(spec.shape))
        return name

    # ---- a case of the tables

    def case(self, case: Case) -> str:
        """The expression of a case of an op, in other sizes, types and attributes."""
        dtype = case.dtype if self.chance(0.6) else self.random.choice(DTYPES)
        sizes = {size: size for size in range(20)}
        if self.chance(0.4):
            sizes[self.integer(1, 4)] = self.one_of(0, 1, 2, 3)
        arguments = [
            f"[{', '.join(self._varied(part, dtype, sizes) for part in one)}]"
            if isinstance(one, Listed)
            else self._varied(one, dtype, sizes)
            for one in case.specs
        ]
        for name, value in case.attributes.items():
            value = dtype if value == case.dtype else value
            arguments.append(f"{name}={self._attribute(value)!r}")
        return f"op({', '.join([repr(case.op), *arguments])})"

    def _varied(self, spec: Spec, dtype: str, sizes: dict[int, int]) -> str:
        own = spec.dtype_in(dtype)
        if spec.kind != "literal":
            shape = tuple(sizes.get(size, size) for size in spec.shape)
            return self._add(dataclasses.replace(spec, shape=shape, dtype=own))
        value = np.asarray(spec.args[0])
        if value.dtype.kind == "i" and value.size and self.chance(0.15):
            value = value + self.integer(-2, 2)
        if self.chance(0.05) and own in ("int32", "int64"):
            own = "int64" if own == "int32" else "int32"
        return self._add(Spec("literal", value.shape, (value,), own))

    def _attribute(self, value: Any) -> Any:
        if not self.chance(0.25):
            return value
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return value + self.integer(-2, 2)
        return value


@functools.lru_cache
def table_cases() -> list[Case]:
    """The cases that change no state and that TensorFlow computes without a change of layout."""
    cases = [case for family in FAMILIES for case in op_cases.load(family)]
    return [case for case in cases if case.values and not case.channels_last and _is_plain(case)]


def _is_plain(case: Case) -> bool:
    specs = [part for one in case.specs for part in (one if isinstance(one, Listed) else [one])]
    plain = all(spec.role == "tensor" and spec.dtype_in(case.dtype) != "string" for spec in specs)
    return plain and all(_is_finite(spec) for spec in specs)


def _is_finite(spec: Spec) -> bool:
    """Whether it holds numbers that functions answer for; the tables ask what becomes of others."""
    return spec.kind != "literal" or bool(np.all(np.isfinite(np.asarray(spec.args[0], complex))))


def random_call(seed: int) -> Call:
    """The call of this seed."""
    from call_recipes import RECIPES

    draw = Draw(seed)
    if draw.chance(0.3):
        ops = sorted({case.op for case in table_cases()})
        chosen = draw.one_of(*ops)
        expression = draw.case(draw.one_of(*(case for case in table_cases() if case.op == chosen)))
    else:
        name, recipe = draw.one_of(*RECIPES)
        expression = recipe(draw, name)
    return Call(expression, draw.inputs)


# ---- answers


def answer(tf: Any, op: Any, call: Call) -> dict[str, Any]:
    """What comes of the call; `op(name, *inputs, **attributes)` adds a raw operation."""
    with tf.Graph().as_default() as graph:
        names, feed = {"tf": tf, "np": np, "op": op}, {}
        for name, one in call.inputs.items():
            value = one.spec.draw(one.spec.dtype or "float32", f"{call.expression}/{name}")
            dtype = tf.as_dtype(one.spec.dtype)
            if one.known == "constant":
                names[name] = tf.constant(value, dtype)
            else:
                names[name] = tf.placeholder(dtype, one.known)
                feed[names[name]] = value
        try:
            outputs = flat(tf, eval(_compiled(call.expression), names))
        except Exception as error:
            return _failed("build", error)
        with tf.Session(graph=graph, config=_without_optimiser(tf)) as session:
            return _run(tf, session, call, outputs, names, feed)


def _failed(stage: str, error: Exception) -> dict[str, Any]:
    message = str(error)
    missing = "No OpKernel was registered" in message
    return {"error": [stage, NO_KERNEL if missing else type(error).__name__], "message": message[:300]}


@functools.lru_cache(None)
def _compiled(expression: str) -> Any:
    """The code of an expression, kept, as TensorFlow's operations refer to it."""
    return compile(expression, "<call>", "eval")


def _without_optimiser(tf: Any) -> Any:
    if "flowstone" in tf.__name__:
        return None
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def flat(tf: Any, result: Any) -> list[Any]:
    """The tensors of a result; what is none is told by its text."""
    if isinstance(result, tf.IndexedSlices):
        return [tf.convert_to_tensor(result)]
    if isinstance(result, tf.SparseTensor):
        return [result.indices, result.values, result.dense_shape]
    if isinstance(result, (list, tuple)):
        return [part for one in result for part in flat(tf, one)]
    if isinstance(result, tf.Operation):
        return list(result.outputs)
    return [] if result is None else [result]


def _run(tf: Any, session: Any, call: Call, outputs: list[Any], names: Any, feed: Any) -> dict[str, Any]:
    tensors = [one for one in outputs if isinstance(one, tf.Tensor)]
    try:
        values = [np.asarray(value) for value in session.run(tensors, feed)]
    except Exception as error:
        return _failed("run", error)
    told = [
        [one.dtype.base_dtype.name, _static(one), _listed(values.pop(0))]
        if isinstance(one, tf.Tensor)
        else ["text", None, str(one)]
        for one in outputs
    ]
    found = {"outputs": told}
    wanted = {n: names[n] for n, one in call.inputs.items() if op_cases.is_differentiable(one.spec.dtype)}
    ys = [one for one in tensors if op_cases.is_differentiable(one.dtype.base_dtype.name)]
    if wanted and ys:
        found["gradients"] = _gradients(tf, session, call, ys, wanted, feed)
    return found


def _gradients(tf: Any, session: Any, call: Call, ys: list[Any], wanted: Any, feed: Any) -> dict[str, Any]:
    try:
        flows = [
            Spec("normal", np.shape(value)).draw(y.dtype.base_dtype.name, f"{call.expression}/dy{index}")
            for index, (y, value) in enumerate(zip(ys, session.run(ys, feed), strict=True))
        ]
        flows = [tf.constant(flow, y.dtype.base_dtype) for y, flow in zip(ys, flows, strict=True)]
        found = tf.gradients(ys, list(wanted.values()), flows)
        known = {
            n: tf.convert_to_tensor(one) for n, one in zip(wanted, found, strict=True) if one is not None
        }
    except Exception as error:
        return _failed("build", error)
    try:
        values = {n: _listed(np.asarray(value)) for n, value in session.run(known, feed).items()}
    except Exception as error:
        return _failed("run", error)
    return {n: values.get(n) for n in wanted}


def _static(tensor: Any) -> list[int | None] | None:
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def _listed(value: np.ndarray) -> list[Any]:
    """The shape and elements, as JSON can hold them."""
    elements = value.reshape(-1)
    if value.dtype.kind == "c":
        elements = np.stack([elements.real, elements.imag], -1).reshape(-1)
    if value.dtype.kind in "OS":
        return [list(value.shape), [bytes(one).decode("latin-1") for one in elements]]
    if value.dtype.kind not in "iub":
        return [list(value.shape), [float(f"{one:.7g}") for one in elements.astype(np.float64)]]
    return [list(value.shape), elements.tolist()]


def without_messages(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without the texts of errors, which no two packages share."""
    kept = {key: value for key, value in answer.items() if key != "message"}
    if "gradients" in kept:
        kept["gradients"] = without_messages(kept["gradients"])
    return kept


# ---- differences


def difference(found: dict[str, Any], expected: dict[str, Any], call: Call) -> str | None:
    """How an answer to the call differs from the expected one, in a few words; None if it does not.

    A static shape may say more than the expected one.
    """
    dtypes = {name: one.spec.dtype or "" for name, one in call.inputs.items()}
    if "error" in found or "error" in expected:
        return _error_difference(found.get("error"), expected.get("error"))
    ours, theirs = found["outputs"], expected["outputs"]
    if [one[0] for one in ours] != [one[0] for one in theirs]:
        return f"dtypes {[one[0] for one in ours]} instead of {[one[0] for one in theirs]}"
    for (dtype, _, mine), (_, _, other) in zip(ours, theirs, strict=True):
        if reason := _value_difference(dtype, mine, other):
            return f"value {reason}"
    if not all(_knows(mine[1], mine[2], other[1]) for mine, other in zip(ours, theirs, strict=True)):
        return f"static {[one[1] for one in ours]} instead of {[one[1] for one in theirs]}"
    return _gradient_difference(found.get("gradients", {}), expected.get("gradients", {}), dtypes)


def _knows(static: Any, value: Any, expected: Any) -> bool:
    """Whether a static shape says at least as much as the expected one, and nothing wrong of the value."""
    if static is None:
        return expected is None
    if len(static) != len(value[0]):
        return False
    if static == expected:
        return True
    right = all(size in (None, real) for size, real in zip(static, value[0], strict=True))
    return right and (
        expected is None or all(b is None or a == b for a, b in zip(static, expected, strict=True))
    )


def _error_difference(found: Any, expected: Any) -> str | None:
    if found == expected or (expected and expected[1] == NO_KERNEL):
        return None
    return f"error {found} instead of {expected}"


def _gradient_difference(found: Any, expected: Any, dtypes: dict[str, str]) -> str | None:
    if "error" in found or "error" in expected:
        if "error" in expected and expected["error"][1] != "LookupError":
            return None  # TensorFlow's own gradient does not fit its op, as with axes of int64
        reason = _error_difference(found.get("error"), expected.get("error"))
        return reason and f"gradient {reason}"
    for name in expected:
        mine, other = found.get(name), expected[name]
        if (mine is None or 0 in mine[0]) != (other is None or 0 in other[0]):  # 1.15 has some of no elements
            return f"gradient {mine} instead of {other}"
        if (
            mine is not None
            and other is not None
            and (reason := _value_difference(dtypes[name], mine, other))
        ):
            return f"gradient {reason}"
    return None


def _value_difference(dtype: str, found: Any, expected: Any) -> str | None:
    if dtype == "text" or not op_cases.is_differentiable(dtype):
        return None if found == expected else f"{found} instead of {expected}"
    if found[0] != expected[0]:
        return f"shape {found[0]} instead of {expected[0]}"
    tolerance = TOLERANCES.get(dtype, 2e-4)
    ours, theirs = np.array(found[1], float), np.array(expected[1], float)
    with np.errstate(invalid="ignore"):
        scale = np.max(np.abs(theirs), initial=0.0, where=np.isfinite(theirs))
        near = np.allclose(ours, theirs, rtol=tolerance, atol=tolerance * max(scale, 1e-2), equal_nan=True)
    return None if near else f"{found} instead of {expected}"
