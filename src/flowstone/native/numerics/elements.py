"""What element-wise operations mean for one vector: a table by the operations' names in graphs.

``ELEMENTS[name].emit(emitter, dtype, operands, attributes)`` writes the instructions and returns the result's
name; `dtype` is that of the operands, all of one type but for a first `bool` of Select. `types` are the types
that the operation takes here; of float16, each is computed in float32 and rounded, as by ATen. Additions,
products, quotients, comparisons and choices give ATen's bits. Square roots are rounded correctly, functions
of SLEEF, which torch brings, are within one unit in the last place; for exponential functions of float32 see
`transcendental.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import (
    FLOATING,
    FLOATS,
    HALF,
    INTEGERS,
    SIZES,
    Attributes,
    Emit,
    Emitter,
    sleef_name,
)
from flowstone.native.numerics import activations as act
from flowstone.native.numerics import exponential_functions as functions
from flowstone.native.numerics import transcendental
from flowstone.native.numerics.bits import BITS
from flowstone.native.numerics.circular_functions import CIRCULAR
from flowstone.native.numerics.error_functions import POLYNOMIALS
from flowstone.native.numerics.special_functions import FUNCTIONS, WHOLE_FUNCTIONS

__all__ = ["ATTRIBUTES", "ELEMENTS", "Element", "suits"]

_NUMBERS = FLOATS | (INTEGERS - {"uint8"})
_ALL = FLOATS | INTEGERS | {"bool"}
_WIDE = FLOATING | {"int16", "int32", "int64"}
_COSTLY = 8  # of an addition, for exponential functions


class Element(NamedTuple):
    """An operation: the types of its operands, how many it takes (None: any number), its instructions, what
    it costs in additions, its result's type (None: the operands'), the functions of SLEEF that it calls,
    whether a node of it alone is faster than ATen's kernels, which take several passes, the types of which
    one with many elements is, since ATen has no vectors for it or several passes, and those of which a node
    alone is no faster, since ATen calls a library's vectors.
    """

    types: frozenset[str]
    operands: int | None
    emit: Emit
    cost: int = 1
    result: str | None = None
    calls: tuple[str, ...] = ()
    alone: bool = False
    alone_if_many: frozenset[str] = frozenset()
    not_alone: frozenset[str] = frozenset()


ELEMENTS: dict[str, Element] = {}
ATTRIBUTES = ("alpha", "DstT", "tolerance")
"""The attributes of nodes that an element may depend on."""


def suits(name: str, dtypes: Sequence[str], attributes: Attributes) -> bool:
    """Whether the operation can be compiled for operands of these types."""
    element = ELEMENTS.get(name)
    if element is None or not dtypes or (HALF in dtypes and not host.has_halves()):
        return False
    if element.operands is not None and len(dtypes) != element.operands:
        return False
    if name in ("Select", "SelectV2"):
        return dtypes[0] == "bool" and dtypes[1] == dtypes[2] and dtypes[1] in element.types
    if any(each != dtypes[0] for each in dtypes) or dtypes[0] not in element.types:
        return False
    if name == "Cast":
        target, is_floating = attributes["DstT"].name, dtypes[0] in FLOATS or dtypes[0] == HALF
        if target == HALF and not host.has_halves():
            return False
        if is_floating and target in INTEGERS and not host.is_x86():
            return False
        return target in _ALL or target == HALF
    computed = "float32" if dtypes[0] == HALF else dtypes[0]
    if name in _POLYNOMIALS and functions.is_polynomial(computed):
        return True
    return all(host.has(sleef_name(each, computed, _accuracy(each))) for each in element.calls)


def _accuracy(name: str) -> str:
    return "u15" if name == "erfc" else "u10"


# ---- arithmetic


def _binary(floating: str, whole: str) -> Emit:
    return lambda e, dtype, x, attributes: e.binary(
        floating if dtype in FLOATING else whole, dtype, x[0], x[1]
    )


def _sum(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    total, add = x[0], "fadd" if dtype in FLOATING else "add"
    for each in x[1:]:
        total = e.binary(add, dtype, total, each)
    return total


def _square(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    return e.binary("fmul" if dtype in FLOATING else "mul", dtype, x[0], x[0])


def _difference_squared(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    return _square(e, dtype, [e.binary("fsub" if dtype in FLOATING else "sub", dtype, *x)], attributes)


def _absolute(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    if dtype in FLOATS:
        return e.intrinsic("fabs", dtype, x[0])
    below = e.compare("icmp slt", dtype, x[0], e.constant(dtype, 0))
    return e.select(below, dtype, e.negate(dtype, x[0]), x[0])


def _sign(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    zero = e.constant(dtype, 0)
    if dtype not in FLOATS:
        result = e.select(
            e.compare("icmp slt", dtype, x[0], zero), dtype, e.constant(dtype, -1), e.constant(dtype, 1)
        )
        return e.select(e.compare("icmp eq", dtype, x[0], zero), dtype, zero, result)
    above = e.select(e.compare("fcmp ogt", dtype, x[0], zero), dtype, e.constant(dtype, 1), zero)
    signed = e.select(e.compare("fcmp olt", dtype, x[0], zero), dtype, e.constant(dtype, -1), above)
    return e.select(e.compare("fcmp uno", dtype, x[0], x[0]), dtype, x[0], signed)


def _extreme(floating: str, whole: str) -> Emit:
    def emit(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
        if dtype not in FLOATS:
            sign = "u" if dtype == "uint8" else "s"
            return e.select(e.compare(f"icmp {sign}{whole}", dtype, *x), dtype, x[0], x[1])
        chosen = e.select(e.compare(f"fcmp {floating}", dtype, *x), dtype, x[0], x[1])
        return e.select(e.compare("fcmp uno", dtype, x[0], x[0]), dtype, x[0], chosen)

    return emit


def _intrinsic(name: str) -> Emit:
    return lambda e, dtype, x, attributes: e.intrinsic(name, dtype, x[0])


def _quotient(rounding: str) -> Emit:
    return lambda e, dtype, x, attributes: e.intrinsic(rounding, dtype, e.binary("fdiv", dtype, *x))


def _reciprocal(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    return e.binary("fdiv", dtype, e.constant(dtype, 1), x[0])


def _inverse_root(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    return _reciprocal(e, dtype, [e.intrinsic("sqrt", dtype, x[0])], attributes)


def _same(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    return x[0]


def _everywhere(value: float) -> Emit:
    return lambda e, dtype, x, attributes: e.constant(dtype, value)


def _cast(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    target = attributes["DstT"].name
    if target not in INTEGERS or dtype not in (*FLOATS, HALF):
        return e.convert(x[0], dtype, target)
    if dtype == HALF:
        return _truncated(e, "float32", e.convert(x[0], HALF, "float32"), target)
    return _truncated(e, dtype, x[0], target)


def _truncated(e: Emitter, dtype: str, x: str, target: str) -> str:
    """The number without its fraction. Of NaN, and of what is out of range, the least integer of 32 or 64
    bits, as this kind of processor and so ATen has it; narrower integers are the lower bits of one of 32, or
    if they are unsigned, of 64."""
    wide = "int64" if target in ("int64", "uint8") else "int32"
    top = 1 << 8 * SIZES[wide] - 1
    above = e.compare("fcmp oge", dtype, x, e.constant(dtype, -top))
    is_inside = e.binary("and", "bool", above, e.compare("fcmp olt", dtype, x, e.constant(dtype, top)))
    found = e.select(is_inside, wide, e.convert(x, dtype, wide), e.constant(wide, -top))
    return e.convert(found, wide, target)


_add = _binary("fadd", "add")
for _name in ("Add", "AddV2"):
    ELEMENTS[_name] = Element(_NUMBERS, 2, _add)
ELEMENTS["AddN"] = Element(_NUMBERS, None, _sum)
ELEMENTS["BiasAdd"] = ELEMENTS["BiasAddV1"] = Element(_NUMBERS, 2, _add)
ELEMENTS["Sub"] = Element(_NUMBERS, 2, _binary("fsub", "sub"))
ELEMENTS["Mul"] = Element(_NUMBERS, 2, _binary("fmul", "mul"))
ELEMENTS["RealDiv"] = ELEMENTS["Div"] = Element(FLOATS, 2, _binary("fdiv", ""), 4)
ELEMENTS["FloorDiv"] = Element(FLOATS, 2, _quotient("floor"), 5, alone_if_many=FLOATING)
ELEMENTS["TruncateDiv"] = Element(FLOATS, 2, _quotient("trunc"), 5, alone_if_many=FLOATING)
ELEMENTS["Neg"] = Element(_NUMBERS, 1, lambda e, dtype, x, attributes: e.negate(dtype, x[0]))
ELEMENTS["Square"] = Element(_NUMBERS, 1, _square, alone_if_many=INTEGERS)
ELEMENTS["SquaredDifference"] = Element(
    FLOATS | {"int32", "int64"}, 2, _difference_squared, alone_if_many=_ALL
)
ELEMENTS["Abs"] = Element(_NUMBERS, 1, _absolute)
ELEMENTS["Sign"] = Element(_NUMBERS, 1, _sign, alone=True)
ELEMENTS["Maximum"] = Element(FLOATS | INTEGERS, 2, _extreme("ogt", "ge"))
ELEMENTS["Minimum"] = Element(FLOATS | INTEGERS, 2, _extreme("olt", "le"))
ELEMENTS["Sqrt"] = Element(FLOATS, 1, _intrinsic("sqrt"), 4)
ELEMENTS["Rsqrt"] = Element(FLOATS, 1, _inverse_root, 6)
ELEMENTS["Reciprocal"] = ELEMENTS["Inv"] = Element(FLOATS, 1, _reciprocal, 4, alone_if_many=FLOATING)
ELEMENTS["Floor"] = Element(FLOATS, 1, _intrinsic("floor"))
ELEMENTS["Ceil"] = Element(FLOATS, 1, _intrinsic("ceil"))
ELEMENTS["Rint"] = ELEMENTS["Round"] = Element(FLOATS, 1, _intrinsic("roundeven"))
ELEMENTS["ZerosLike"] = Element(_ALL, 1, _everywhere(0))
ELEMENTS["OnesLike"] = Element(_ALL, 1, _everywhere(1))
ELEMENTS["Cast"] = Element(_ALL, 1, _cast)
for _name in ("Identity", "StopGradient", "PreventGradient"):
    ELEMENTS[_name] = Element(_ALL, 1, _same, 0)


def _of_bits(emit: Callable[..., str]) -> Emit:
    return lambda e, dtype, x, attributes: emit(e, dtype, *x)


for _name, (_bits, _count, _result) in BITS.items():
    _many = frozenset[str]() if _name.startswith("Bitwise") or _name == "Invert" else INTEGERS
    ELEMENTS[_name] = Element(INTEGERS, _count, _of_bits(_bits), result=_result, alone_if_many=_many)


# ---- comparisons and choices


def _comparison(floating: str, whole: str) -> Emit:
    def emit(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
        if dtype in FLOATS:
            return e.compare(f"fcmp {floating}", dtype, x[0], x[1])
        sign = "" if whole in ("eq", "ne") else "u" if dtype in ("uint8", "bool") else "s"
        return e.compare(f"icmp {sign}{whole}", dtype, x[0], x[1])

    return emit


def _near(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    apart = e.intrinsic("fabs", dtype, e.binary("fsub", dtype, x[0], x[1]))
    return e.compare("fcmp olt", dtype, apart, e.constant(dtype, attributes["tolerance"]))


def _choice(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    return e.select(x[0], dtype, x[1], x[2])


def _logical(name: str) -> Emit:
    return lambda e, dtype, x, attributes: e.binary(name, dtype, x[0], x[1])


def _classified(predicate: str, value: float, of_size: bool) -> Emit:
    def emit(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
        size = e.intrinsic("fabs", dtype, x[0]) if of_size else x[0]
        return e.compare(f"fcmp {predicate}", dtype, size, e.constant(dtype, value))

    return emit


for _name, _floating, _whole in (
    ("Less", "olt", "lt"),
    ("LessEqual", "ole", "le"),
    ("Greater", "ogt", "gt"),
    ("GreaterEqual", "oge", "ge"),
    ("Equal", "oeq", "eq"),
    ("NotEqual", "une", "ne"),
):
    _compared = FLOATS | INTEGERS | ({"bool"} if _whole in ("eq", "ne") else set())
    ELEMENTS[_name] = Element(
        _compared, 2, _comparison(_floating, _whole), result="bool", alone_if_many=_WIDE
    )
ELEMENTS["ApproximateEqual"] = Element(FLOATS, 2, _near, 3, result="bool", alone=True)
ELEMENTS["Select"] = ELEMENTS["SelectV2"] = Element(_ALL, 3, _choice, alone=True)
ELEMENTS["LogicalAnd"] = Element(frozenset({"bool"}), 2, _logical("and"))
ELEMENTS["LogicalOr"] = Element(frozenset({"bool"}), 2, _logical("or"))
ELEMENTS["LogicalNot"] = Element(
    frozenset({"bool"}), 1, lambda e, dtype, x, attributes: e.binary("xor", dtype, x[0], e.constant(dtype, 1))
)
ELEMENTS["IsNan"] = Element(FLOATS, 1, _classified("uno", 0.0, False), result="bool", alone_if_many=FLOATING)
ELEMENTS["IsInf"] = Element(FLOATS, 1, _classified("oeq", math.inf, True), result="bool", alone=True)
ELEMENTS["IsFinite"] = Element(FLOATS, 1, _classified("olt", math.inf, True), result="bool", alone=True)


# ---- exponential functions and their kin

_POLYNOMIALS = {
    "Exp": transcendental.exp,
    "Expm1": transcendental.expm1,
    "Log": transcendental.log,
    "Tanh": transcendental.tanh,
    "Sigmoid": transcendental.sigmoid,
    **POLYNOMIALS,
}


def _function(name: str, sleef: str) -> Emit:
    polynomials = _POLYNOMIALS.get(name) or CIRCULAR.get(name)

    def emit(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
        if polynomials is not None and functions.is_polynomial(dtype):
            return polynomials(e, x[0])
        return e.sleef(sleef, dtype, *x, accuracy=_accuracy(sleef))

    return emit


_LIBRARYS = frozenset({"float64"})  # of which MKL has functions, some in a fifth of the time

for _name, _called in (
    ("Exp", "exp"), ("Expm1", "expm1"), ("Log", "log"), ("Log1p", "log1p"), ("Sin", "sin"), ("Cos", "cos"),
    ("Tan", "tan"), ("Tanh", "tanh"), ("Sinh", "sinh"), ("Cosh", "cosh"), ("Asin", "asin"), ("Acos", "acos"),
    ("Atan", "atan"), ("Atanh", "atanh"), ("Erf", "erf"),
    ("Erfc", "erfc"),
):  # fmt: skip
    ELEMENTS[_name] = Element(
        FLOATS, 1, _function(_name, _called), _COSTLY, calls=(_called,), not_alone=_LIBRARYS
    )


def _inverse_hyperbolic(sleef: str) -> Emit:
    return lambda e, dtype, x, attributes: functions.inverse_hyperbolic(e, sleef, dtype, x[0])


for _name, _called in (("Asinh", "asinh"), ("Acosh", "acosh")):
    _emitted = _inverse_hyperbolic(_called)
    _left = _LIBRARYS if _name == "Acosh" else frozenset()
    ELEMENTS[_name] = Element(FLOATS, 1, _emitted, 2 * _COSTLY, calls=(_called, "log"), not_alone=_left)
ELEMENTS["Pow"] = Element(FLOATS, 2, _function("Pow", "pow"), 2 * _COSTLY, calls=("pow",))
ELEMENTS["Atan2"] = Element(FLOATS, 2, _function("Atan2", "atan2"), _COSTLY, calls=("atan2",))
ELEMENTS["Sigmoid"] = Element(
    FLOATS, 1, lambda e, dtype, x, attributes: functions.sigmoid(e, dtype, x[0]), _COSTLY, calls=("exp",)
)


def _special(by_type: Mapping[str, Callable[[Emitter, str], str]]) -> Emit:
    return lambda e, dtype, x, attributes: by_type[dtype](e, x[0])


for _name, (_emit, _calls) in FUNCTIONS.items():
    _emits = {"float32": _emit}
    if _name in WHOLE_FUNCTIONS:
        _emits["float64"], _calls = WHOLE_FUNCTIONS[_name]
    ELEMENTS[_name] = Element(frozenset(_emits), 1, _special(_emits), 8 * _COSTLY, calls=_calls)


def _zero_where(which: int, usual: Callable[[Emitter, str, str, str], str]) -> Emit:
    """Zero where one of the operands is, whatever the other is; else what `usual` gives. The first operand's
    zero keeps its sign."""

    def emit(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
        zero = e.constant(dtype, 0)
        result = zero if which else x[0]
        return e.select(e.compare("fcmp oeq", dtype, x[which], zero), dtype, result, usual(e, dtype, *x))

    return emit


def _times_log(e: Emitter, dtype: str, x: str, y: str) -> str:
    return e.binary("fmul", dtype, x, functions.log(e, dtype, y))


def _times_log1p(e: Emitter, dtype: str, x: str, y: str) -> str:
    return e.binary("fmul", dtype, x, e.sleef("log1p", dtype, y))


def _divided(e: Emitter, dtype: str, x: str, y: str) -> str:
    return e.binary("fdiv", dtype, x, y)


def _multiplied(e: Emitter, dtype: str, x: str, y: str) -> str:
    return e.binary("fmul", dtype, x, y)


ELEMENTS["DivNoNan"] = Element(FLOATS, 2, _zero_where(1, _divided), 3, alone=True)
ELEMENTS["MulNoNan"] = Element(FLOATS, 2, _zero_where(1, _multiplied), 2, alone=True)
ELEMENTS["Xdivy"] = Element(FLOATS, 2, _zero_where(0, _divided), 3, alone=True)
ELEMENTS["Xlog1py"] = Element(FLOATS, 2, _zero_where(0, _times_log1p), _COSTLY, calls=("log1p",))
ELEMENTS["Xlogy"] = Element(FLOATS, 2, _zero_where(0, _times_log), _COSTLY, calls=("log",))


# ---- activations and their gradients

ELEMENTS["Relu"] = Element(_NUMBERS, 1, act.relu)
ELEMENTS["Relu6"] = Element(FLOATS, 1, act.clamped)
ELEMENTS["ReluGrad"] = Element(FLOATS, 2, act.relu_grad)
ELEMENTS["Relu6Grad"] = Element(FLOATS, 2, act.relu6_grad, 2, alone=True)
ELEMENTS["LeakyRelu"] = Element(FLOATS, 1, act.leaky)
ELEMENTS["LeakyReluGrad"] = Element(FLOATS, 2, act.leaky)
ELEMENTS["Elu"] = Element(FLOATS, 1, act.elu(1.0, 1.0), _COSTLY, calls=("expm1",))
ELEMENTS["EluGrad"] = Element(FLOATS, 2, act.elu_grad, 2, alone=True)
ELEMENTS["SeluGrad"] = Element(FLOATS, 2, act.selu_grad, 2, alone=True)
ELEMENTS["Selu"] = Element(FLOATS, 1, act.elu(act.SELU_SCALE, act.SELU_ALPHA), _COSTLY, calls=("expm1",))
ELEMENTS["Softplus"] = Element(FLOATS, 1, act.softplus, 2 * _COSTLY, calls=("exp", "log1p"))
ELEMENTS["SoftplusGrad"] = Element(FLOATS, 2, act.softplus_grad, _COSTLY, calls=("exp",))
ELEMENTS["Softsign"] = Element(FLOATS, 1, act.softsign, 4, alone=True)
ELEMENTS["SoftsignGrad"] = Element(FLOATS, 2, act.softsign_grad, 4, alone=True)
ELEMENTS["SigmoidGrad"] = Element(FLOATS, 2, act.sigmoid_grad, 3)
ELEMENTS["TanhGrad"] = Element(FLOATS, 2, act.tanh_grad, 3)
ELEMENTS["SqrtGrad"] = Element(FLOATS, 2, act.sqrt_grad, 4, alone=True)
ELEMENTS["RsqrtGrad"] = Element(FLOATS, 2, act.rsqrt_grad, 4, alone=True)
ELEMENTS["ReciprocalGrad"] = ELEMENTS["InvGrad"] = Element(FLOATS, 2, act.reciprocal_grad, 3, alone=True)


# ---- float16


def _by_float32(emit: Emit, result: str | None) -> Emit:
    def emit_any(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
        if dtype != HALF:
            return emit(e, dtype, x, attributes)
        found = emit(e, "float32", [e.convert(each, HALF, "float32") for each in x], attributes)
        return found if result else e.convert(found, "float32", HALF)

    return emit_any


_MOVED = frozenset({"Cast", "Identity", "PreventGradient", "Select", "SelectV2", "StopGradient"})
_ROUNDED_OFTEN = frozenset({
    "AddN", "FloorDiv", "InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "Softsign", "SoftsignGrad",
    "SqrtGrad", "SquaredDifference", "TanhGrad", "TruncateDiv",
})  # fmt: skip
"""Those of several operations that ATen rounds each."""
for _name, _element in ELEMENTS.items():
    if "float32" in _element.types:
        _is_same = _name in _MOVED or _name in _ROUNDED_OFTEN
        _emitted = _element.emit if _is_same else _by_float32(_element.emit, _element.result)
        ELEMENTS[_name] = _element._replace(types=_element.types | {HALF}, emit=_emitted)
