"""Every declared op against TensorFlow's definition of it, `tests/golden/ops_facts`.

Allowed types may be more than TensorFlow 1.4's, since later versions added some; attributes may be more if
they have defaults, so that graphs without them still load. All else is the same.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone  # noqa: F401  (declares the ops)
from flowstone.framework.declarations.arguments import Argument
from flowstone.framework.declarations.attributes import REQUIRED, AttributeSpec
from flowstone.framework.declarations.op_functions import parameters
from flowstone.framework.declarations.operation import OpDeclaration, registry

FOLDER = pathlib.Path(__file__).parents[1] / "golden" / "ops_facts"
_LINE = re.compile(r"(?P<name>\w+)\((?P<inputs>.*?)\) -> \((?P<outputs>.*?)\)(?P<rest>( ; .*)?)$")
_TRAITS = re.compile(r" ; \[(?P<traits>[a-z_, ]+)\]$")
_DEPRECATED = re.compile(r" ; deprecated since (?P<version>\d+)")


def _read(line: str) -> OpDeclaration:
    """A fact as a declaration that is registered nowhere."""
    deprecated = _DEPRECATED.search(line)
    match = _LINE.match(_DEPRECATED.sub("", line))
    assert match is not None, line
    traits = _TRAITS.search(match["rest"])
    words = re.split("[, ]+", traits["traits"]) if traits else []
    attributes = _TRAITS.sub("", match["rest"]).replace("= unknown", "= ?")
    signature = f"{match['inputs']} -> {match['outputs']}"
    return OpDeclaration(
        match["name"],
        signature,
        attributes.replace(" ; ", ";").strip(";"),
        stateful="stateful" in words,
        commutative="commutative" in words,
        deprecated=(int(deprecated["version"]), "another") if deprecated else None,
    )


def _facts() -> dict[str, OpDeclaration]:
    found: dict[str, OpDeclaration] = {}
    for name in ("tensorflow-1.4-ops.txt", "later-ops.txt", "more-ops.txt"):
        for line in (FOLDER / name).read_text().splitlines():
            if line and not line.startswith("#"):
                declaration = _read(line)
                found.setdefault(declaration.name, declaration)
    return found


FACTS = _facts()

# The white paper's Table 1 names operations that TensorFlow never had.
PAPER = frozenset(("MutexAcquire", "MutexRelease"))
# Written by `tf.compat.v2` alone, which the facts leave out.
VERSION_TWO = frozenset(("WriteSummary",))
# Those of TensorFlow 2 alone, which graphs of TensorFlow 1 never have.
LATEST = frozenset(
    (
        *(f"Bessel{kind}" for kind in ["I0", "I1", "J0", "J1", "K0", "K0e", "K1", "K1e", "Y0", "Y1"]),
        "BlockLSTMGradV2",
        "BlockLSTMV2",
        "Dawsn",
        "Expint",
        "FresnelCos",
        "FresnelSin",
        "QuantizeAndDequantizeV4",
        "QuantizeAndDequantizeV4Grad",
        "Spence",
    )
)
# Effects that a plan must see although TensorFlow's definition does not tell them.
MARKED_STATEFUL = frozenset(
    (
        "Abort",
        "CheckNumerics",
        "DebugIdentity",
        "DebugNanCount",
        "DebugNumericSummary",
        "DeleteSessionTensor",
        "ExtractGlimpse",
        "ExtractGlimpseV2",
        "FractionalAvgPool",
        "FractionalMaxPool",
        "GetSessionHandle",
        "GetSessionTensor",
        "ImmutableConst",
        "MatchingFiles",
        "Placeholder",
        "PlaceholderV2",
        "ReadFile",
        "SdcaOptimizer",
        "WriteFile",
    )
)
# TensorFlow 1.15 has them again.
ADMITTED_LATER = frozenset(("Inv", "InvGrad"))
# TensorFlow's definition says so by mistake: common subexpressions would be merged wrongly.
NOT_COMMUTATIVE = frozenset(("LeftShift", "RightShift"))
# TensorFlow 1.4 leaves it free in some ops; later versions name the layouts.
LIMITED_LATER = frozenset(("data_format",))
# Later versions took types, which were never computed, from these: the integers ...
_NOT_INTEGERS = ("Acos", "Asin", "Atan", "Softplus", "SoftplusGrad", "Softsign", "SoftsignGrad", "Tan")
# ... or the complex numbers.
_NOT_COMPLEX = ("ArgMax", "ArgMin", "Max", "Min")
DROPPED_LATER: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_NOT_INTEGERS, lambda dtype: bool(dtype.is_integer)),
    **dict.fromkeys(_NOT_COMPLEX, lambda dtype: bool(dtype.is_complex)),
}


def _described(arguments: list[Argument], ours: OpDeclaration, fact: OpDeclaration) -> list[tuple[Any, ...]]:
    return [(a.name, *_type_of(a, ours, fact), a.number_attr, a.type_list_attr, a.is_ref) for a in arguments]


def _type_of(argument: Argument, ours: OpDeclaration, fact: OpDeclaration) -> tuple[str | None, str | None]:
    """The fixed type and the type attribute; one that TensorFlow added later counts as its default."""
    attribute, dtype = argument.type_attr, argument.dtype
    if attribute is not None and attribute not in fact.attributes:
        default = ours.attributes[attribute].default
        if default is not REQUIRED:
            attribute, dtype = None, default
    return dtype.name if dtype else None, attribute


def _differences(ours: OpDeclaration, fact: OpDeclaration) -> list[str]:
    found = []
    for what in ("inputs", "outputs"):
        mine = _described(getattr(ours, what), ours, fact)
        theirs = _described(getattr(fact, what), fact, fact)
        if mine != theirs:
            found.append(f"{what}: {mine} instead of {theirs}")
    for trait in ("stateful", "commutative"):
        meant = ours.name in (MARKED_STATEFUL if trait == "stateful" else NOT_COMMUTATIVE)
        if getattr(ours, trait) != getattr(fact, trait) and not meant:
            found.append(f"{trait}: {getattr(ours, trait)}")
    removed_in = None if fact.deprecated is None or ours.name in ADMITTED_LATER else fact.deprecated[0]
    if (ours.deprecated and ours.deprecated[0]) != removed_in:
        found.append(f"deprecated: {ours.deprecated} instead of {removed_in}")
    for name, spec in fact.attributes.items():
        if name not in ours.attributes:
            found.append(f"no attribute {name}")
        else:
            found += _attribute_differences(
                ours.attributes[name], spec, DROPPED_LATER.get(ours.name, lambda dtype: False)
            )
    if _arguments(ours, fact) != _arguments(fact, ours):
        found.append(f"attributes in the order {_arguments(ours, fact)} instead of {_arguments(fact, ours)}")
    for name, spec in ours.attributes.items():
        if name not in fact.attributes and spec.default is REQUIRED:
            found.append(f"the attribute {name}, which is not TensorFlow's, has no default")
    return found


def _arguments(declaration: OpDeclaration, other: OpDeclaration) -> list[str]:
    """Those arguments of an op's functions that are attributes of both, in order."""
    names = [each.name for each in parameters(declaration)]
    return [name for name in names if name in declaration.attributes and name in other.attributes]


def _attribute_differences(
    ours: AttributeSpec, fact: AttributeSpec, is_dropped: Callable[[Any], bool]
) -> list[str]:
    found = [
        f"{ours.name}: {what} {getattr(ours, what)!r} instead of {getattr(fact, what)!r}"
        for what in ("kind", "is_list", "default", "minimum")
        if not np.array_equal(getattr(ours, what), getattr(fact, what))
    ]
    if ours.allowed is not None and fact.allowed is None and ours.name not in LIMITED_LATER:
        found.append(f"{ours.name}: does not allow every value")
    elif ours.allowed is not None and fact.allowed is not None:
        missing = [x for x in fact.allowed - ours.allowed if not is_dropped(x)]
        if missing:
            found.append(f"{ours.name}: does not allow {sorted(str(x) for x in missing)}")
    return found


def test_facts_are_read() -> None:
    assert len(FACTS) > 900
    conv = FACTS["Conv2D"]
    assert [argument.name for argument in conv.inputs] == ["input", "filter"]
    assert conv.attributes["data_format"].default == "NHWC"
    assert FACTS["Assign"].inputs[0].is_ref
    assert FACTS["VariableV2"].stateful
    assert FACTS["Add"].commutative is False
    assert FACTS["Mul"].commutative
    assert FACTS["Pack"].inputs[0].number_attr == "N"


def test_differences_are_seen() -> None:
    fact = OpDeclaration("X", "a: T, b: int32 -> c: T", "T: type in [float, int32] ; k: int >= 1 = 2")
    for signature, attributes in [
        ("b: T, a: int32 -> c: T", "T: type in [float, int32] ; k: int >= 1 = 2"),
        ("a: T, b: int64 -> c: T", "T: type in [float, int32] ; k: int >= 1 = 2"),
        ("a: Ref(T), b: int32 -> c: T", "T: type in [float, int32] ; k: int >= 1 = 2"),
        ("a: T, b: int32 -> d: T", "T: type in [float, int32] ; k: int >= 1 = 2"),
        ("a: T, b: int32 -> c: T", "T: type in [float] ; k: int >= 1 = 2"),
        ("a: T, b: int32 -> c: T", "T: type in [float, int32] ; k: int >= 1 = 3"),
        ("a: T, b: int32 -> c: T", "T: type in [float, int32] ; k: int = 2"),
        ("a: T, b: int32 -> c: T", "T: type in [float, int32] ; k: float = 2"),
        ("a: T, b: int32 -> c: T", "T: type in [float, int32]"),
        ("a: T, b: int32 -> c: T", "T: type in [float, int32] ; k: int >= 1 = 2 ; more: int"),
    ]:
        assert _differences(OpDeclaration("X", signature, attributes), fact) != []
    later = OpDeclaration("X", "a: T, b: Tb -> c: T", "T: type ; Tb: type = int32 ; k: int >= 1 = 2")
    assert _differences(later, fact) == []
    wider = "T: type in [float, int32, half] ; k: int >= 1 = 2 ; more: int = 0"
    assert _differences(OpDeclaration("X", "a: T, b: int32 -> c: T", wider), fact) == []


@pytest.mark.parametrize("name", sorted(registry))
def test_declaration(name: str) -> None:
    if name.startswith("_"):
        assert name not in FACTS or _differences(registry[name], FACTS[name]) == []
        return
    if name in PAPER | LATEST | VERSION_TWO:
        assert name not in FACTS
        return
    assert name in FACTS, f"TensorFlow has no op {name}: an op of our own begins with '_'"
    assert _differences(registry[name], FACTS[name]) == []
