"""The vocabulary of the op table: what one test of one op is.

A `Case` names an op, its inputs and its attributes. It knows neither Flowstone nor the oracle: the program
that makes the golden files and the test that reads them both resolve the same case, and get the same arrays,
because every random input is drawn from a generator seeded by the case's id and the input's position.

The tables (`tests/ops/tables/<family>.py`) hold `CASES`, a list of what `case(...)` returns; `load(family)`
flattens it and refuses two cases of one id.

Inputs, in the order of the op's definition:

- `normal(2, 3)`, `positive(2, 3)`, `uniform(lo, hi, shape)`: of the case's dtype, unless they name one;
- `ints(lo, hi, shape, dtype)`: integers of [lo, hi); without a dtype, of the case's if that is an integer
  type, else int32;
- `bools(shape)`, `strings([...])`;
- quantised types hold the integers behind them, as plain arrays;
- a number, a NumPy array or a (nested) list of numbers is itself: floats take the case's dtype, integers are
  int32, an array keeps its own. `literal(value, dtype)` says another; the dtype "T" is the case's;
- a list holding an input specification or an array is one list argument (`N*T`), as is `listed(...)`;
- `variable(spec)` is a reference variable holding that value, `resource(spec)` a resource variable.

Attributes are keywords named as in the op's definition. A string that names a dtype is that dtype; "T" is
the case's dtype.

>>> [one.id for one in case("Add", normal(2, 3), normal(3), dtypes="float32 float64")]
['Add-2x3_3-float32', 'Add-2x3_3-float64']
>>> case("Sum", normal(2, 3), [1], keep_dims=True)[0].id
'Sum-2x3_=1-float32-keep_dims=True'
"""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

TABLES = pathlib.Path(__file__).parent / "tables"
NUMPY_DTYPES: dict[str, np.dtype] = {
    **{f"float{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    **{f"complex{bits}": np.dtype(f"complex{bits}") for bits in (64, 128)},
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "bool": np.dtype(bool),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "string": np.dtype(object),
    **{f"q{kind}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16)},
    "qint32": np.dtype(np.int32),
}
_SPELLINGS = {"half": "float16", "float": "float32", "double": "float64"}
LONGEST_ID = 110


def dtype_name(dtype: Any) -> str:
    """The table's name of a NumPy dtype or of a spelling of a dtype ("half" is "float16")."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    return "string" if name == "object" else _SPELLINGS.get(name, name)


def is_differentiable(dtype: str) -> bool:
    """Whether gradients flow through values of this dtype."""
    return dtype.startswith(("float", "bfloat", "complex"))


@dataclasses.dataclass(frozen=True, eq=False)
class Spec:
    """One input to be: how its values are drawn (`kind`, `args`), its shape, dtype and role."""

    kind: str
    shape: tuple[int, ...] = ()
    args: tuple[Any, ...] = ()
    dtype: str | None = None
    role: str = "tensor"  # or "variable", "resource"
    initialized: bool = True

    def dtype_in(self, dtype: str) -> str:
        """The dtype of this input in a case of `dtype`."""
        if self.dtype == "T":
            return dtype
        if self.dtype is not None:
            return self.dtype
        if self.kind == "ints":
            return dtype if "int" in dtype else "int32"
        if self.kind == "literal":
            kind = np.asarray(self.args[0]).dtype.kind
            return {"b": "bool", "i": "int32", "u": "int32", "S": "string", "U": "string", "O": "string"}.get(
                kind, dtype
            )
        return dtype

    def describe(self) -> str:
        """The part of a case's id that stands for this input: its shape, or its value where that is short."""
        if self.kind == "literal":
            value = np.asarray(self.args[0])
            if value.ndim < 2 and value.size <= 4 and value.dtype.kind in "iub":
                text = ",".join(str(item) for item in value.reshape(-1))
                return f"={text}" if value.size else "=none"
            return f"{_shape_text(self.shape)}~{zlib.crc32(repr(value.tolist()).encode()) % 0x10000:04x}"
        mark = {"tensor": "", "variable": "&", "resource": "@"}[self.role]
        return mark + _shape_text(self.shape)

    def draw(self, dtype: str, seed: str) -> np.ndarray:
        """The values, as an array of NumPy's counterpart of `dtype_in(dtype)`."""
        own = self.dtype_in(dtype)
        if self.kind == "literal":
            return _literal_array(self.args[0], own)
        random = np.random.RandomState(zlib.crc32(seed.encode()))
        if own.startswith("complex"):
            return np.asarray(self._real(random) + 1j * self._real(random)).astype(own)
        values = self._real(random)
        if own == "string":
            return np.array([b"%d" % (4 * item) for item in values.reshape(-1)], object).reshape(self.shape)
        if own == "bool":
            return np.asarray(values > 0)
        if "int" in own and self.kind != "ints":
            values = np.rint(values if self.kind == "uniform" else 4 * values)
            if self.kind == "positive":
                values = np.maximum(values, 1)
        if own.startswith(("uint", "quint")):
            values = np.abs(values)
        return np.asarray(values).astype(NUMPY_DTYPES[own])

    def _real(self, random: np.random.RandomState) -> np.ndarray:
        if self.kind == "normal":
            return np.asarray(random.standard_normal(self.shape))
        if self.kind == "positive":
            return np.asarray(0.1 + random.gamma(2.0, 0.7, self.shape))
        if self.kind == "uniform":
            return np.asarray(random.uniform(*self.args, size=self.shape))
        if self.kind == "ints":
            return np.asarray(random.randint(*self.args, size=self.shape, dtype=np.int64))
        return np.asarray(random.uniform(-1.0, 1.0, self.shape))


class Listed(tuple):
    """Specifications that make one list argument."""


InputSpec = Spec | Listed


@dataclasses.dataclass(frozen=True, eq=False)
class Input:
    """A resolved input: its role ("tensor", "variable", "resource"), dtype name and value.

    Strings are object arrays of `bytes`, bfloat16 is `ml_dtypes.bfloat16`.
    """

    role: str
    dtype: str
    value: np.ndarray
    initialized: bool = True


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One test of one op; see `case` for the fields."""

    id: str
    op: str
    specs: tuple[InputSpec, ...]
    dtype: str
    attributes: dict[str, Any]
    gradient: bool | None = None
    error: str | None = None
    rtol: float | None = None
    atol: float | None = None
    outputs: tuple[int, ...] | None = None
    values: bool = True
    signed_zeros: bool = False
    channels_last: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    def inputs(self) -> list[Input | list[Input]]:
        """The resolved inputs, a list argument as a list. Equal in every process."""
        resolved: list[Input | list[Input]] = []
        for index, spec in enumerate(self.specs):
            if isinstance(spec, Listed):
                resolved.append([self._input(one, f"{index}.{item}") for item, one in enumerate(spec)])
            else:
                resolved.append(self._input(spec, str(index)))
        return resolved

    def _input(self, spec: Spec, position: str) -> Input:
        value = spec.draw(self.dtype, f"{self.id}/{position}")
        return Input(spec.role, spec.dtype_in(self.dtype), value, spec.initialized)

    def output_gradient(self, index: int, shape: Sequence[int], dtype: str) -> np.ndarray:
        """The gradient that flows back into output `index`: seeded standard normal values."""
        return Spec("normal", tuple(shape), dtype=dtype).draw(dtype, f"{self.id}/dy{index}")

    def differentiable(self, one: Input) -> bool:
        """Whether the gradient with respect to this input belongs to the case.

        Variables count only where the case says `gradient=True`: most ops that take one change it.
        """
        if self.gradient is False or self.error is not None or not is_differentiable(one.dtype):
            return False
        return one.role == "tensor" or self.gradient is True

    def compares(self, index: int) -> bool:
        """Whether the values of output `index` are compared and differentiated."""
        return self.values and (self.outputs is None or index in self.outputs)


def case(
    op: str,
    *inputs: Any,
    dtypes: str = "float32",
    gradient: bool | None = None,
    error: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    label: str | None = None,
    outputs: Sequence[int] | None = None,
    values: bool = True,
    signed_zeros: bool = False,
    channels_last: tuple[Sequence[int], Sequence[int]] | None = None,
    **attributes: Any,
) -> tuple[Case, ...]:
    """Cases of `op`, one for each of `dtypes` (names separated by spaces).

    `gradient`: None compares gradients of all float inputs wherever the oracle defines them, False never
    does, True also those of variables, and the oracle must define them. `error` is the class of error the
    oracle raises when building or running. `rtol`, `atol` replace the dtype's tolerances. `outputs` are the
    outputs whose values count (default: all), `values=False` compares dtypes and shapes only. `signed_zeros`
    also compares the signs of zeros. `channels_last=(inputs, outputs)` marks a case in NCHW (or NCDHW) that
    the oracle computes in NHWC: the inputs and outputs at these positions are transposed for it, with the
    attributes. `label` tells apart cases of the same op, shapes and attributes.
    """
    specs = tuple(_spec(one) for one in inputs)
    made = []
    for dtype in map(dtype_name, dtypes.split()):
        resolved = {name: dtype if value == "T" else value for name, value in _plain(attributes).items()}
        made.append(
            Case(
                id=_identify(op, specs, dtype, attributes, label, error),
                op=op,
                specs=specs,
                dtype=dtype,
                attributes=resolved,
                gradient=gradient,
                error=error,
                rtol=rtol,
                atol=atol,
                outputs=None if outputs is None else tuple(outputs),
                values=values,
                signed_zeros=signed_zeros,
                channels_last=channels_last and (tuple(channels_last[0]), tuple(channels_last[1])),
            )
        )
    return tuple(made)


def normal(*shape: int, dtype: str | None = None) -> Spec:
    """Standard normal values; integers are four times as wide, unsigned ones their absolute values."""
    return Spec("normal", shape, dtype=dtype)


def positive(*shape: int, dtype: str | None = None) -> Spec:
    """Values above 0.1 (integers: at least 1), most of them below 4."""
    return Spec("positive", shape, dtype=dtype)


def uniform(low: float, high: float, shape: Sequence[int] = (), dtype: str | None = None) -> Spec:
    """Values of the half-open interval [low, high), rounded to the nearest integer for integer types."""
    return Spec("uniform", tuple(shape), (low, high), dtype)


def ints(low: int, high: int, shape: Sequence[int] = (), dtype: str | None = None) -> Spec:
    """Integers of [low, high): without a dtype, of the case's if that is an integer type, else int32."""
    return Spec("ints", tuple(shape), (low, high), dtype)


def bools(shape: Sequence[int] = ()) -> Spec:
    """True or False, each as likely."""
    return Spec("bools", tuple(shape), dtype="bool")


def strings(values: Any) -> Spec:
    """A string tensor of these `str` or `bytes`."""
    return literal(values, "string")


def literal(value: Any, dtype: str | None = None) -> Spec:
    """These very values; `dtype` "T" is the case's."""
    return Spec("literal", np.asarray(value).shape, (value,), dtype and dtype_name(dtype))


def listed(*inputs: Any) -> Listed:
    """One list argument (`N*T` or a list of types) of these inputs."""
    return Listed(_spec(one) for one in inputs)


def variable(value: Any, initialized: bool = True) -> Spec:
    """A reference variable holding `value`, or made for it and left uninitialized."""
    return dataclasses.replace(_spec(value), role="variable", initialized=initialized)


def resource(value: Any, initialized: bool = True) -> Spec:
    """The handle of a resource variable holding `value`, or made for it and left uninitialized."""
    return dataclasses.replace(_spec(value), role="resource", initialized=initialized)


def families() -> list[str]:
    """The names of all tables."""
    return sorted(path.stem for path in TABLES.glob("*.py") if not path.stem.startswith("_"))


def load(family: str) -> list[Case]:
    """The cases of a table, in its order. Raises ValueError if two have one id."""
    cases = list(_flatten(importlib.import_module(f"tables.{family}").CASES))
    seen: set[str] = set()
    for one in cases:
        if one.id in seen:
            raise ValueError(f"tables/{family}.py has two cases {one.id}: give one a label")
        seen.add(one.id)
    return cases


def _flatten(cases: Any) -> Iterator[Case]:
    for one in cases:
        if isinstance(one, Case):
            yield one
        else:
            yield from _flatten(one)


def _spec(value: Any) -> Any:
    if isinstance(value, (Spec, Listed)):
        return value
    if isinstance(value, np.ndarray):
        return literal(value, dtype_name(value.dtype))
    if isinstance(value, np.generic):
        return literal(np.asarray(value), dtype_name(value.dtype))
    if isinstance(value, list) and any(isinstance(item, (Spec, np.ndarray)) for item in value):
        return listed(*value)
    return literal(value)


def _literal_array(value: Any, dtype: str) -> np.ndarray:
    if dtype != "string":
        return np.asarray(value).astype(NUMPY_DTYPES[dtype])
    array = np.array(value, object)
    encoded = [item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1)]
    result = np.empty(len(encoded), object)
    result[:] = encoded
    return result.reshape(array.shape)


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        name: dtype_name(value) if isinstance(value, str) and value in _SPELLINGS else value
        for name, value in attributes.items()
    }


def _shape_text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _identify(
    op: str,
    specs: Sequence[InputSpec],
    dtype: str,
    attributes: dict[str, Any],
    label: str | None,
    error: str | None,
) -> str:
    inputs = [
        f"({'+'.join(one.describe() for one in spec)})" if isinstance(spec, Listed) else spec.describe()
        for spec in specs
    ]
    parts = [op, "_".join(inputs), dtype]
    parts += [f"{name}={_attribute_text(value)}" for name, value in sorted(attributes.items())]
    parts += [part for part in (label, error) if part]
    text = re.sub(r"[\s'\"/\[\]\\]+", "", "-".join(part for part in parts if part))
    if len(text) > LONGEST_ID:
        text = f"{text[: LONGEST_ID - 9]}~{zlib.crc32(text.encode()):08x}"
    return text


def _attribute_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "(" + ",".join(_attribute_text(item) for item in value) + ")"
    return str(value)
