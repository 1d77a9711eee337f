"""The type of the lines that arithmetic writes."""

from __future__ import annotations

import pytest

from flowstone.native.codegen.arithmetic import Arithmetic
from flowstone.native.codegen.emitter import Emitter


class _Short(Arithmetic):
    TYPE = "float32"


class _Long(Arithmetic):
    TYPE = "float64"


@pytest.mark.parametrize(("kind", "name"), [(_Short, "float"), (_Long, "double")])
def test_lines_are_of_the_type(kind: type[Arithmetic], name: str) -> None:
    each = kind(Emitter(1, {}))
    larger = each.where(each.is_("ogt", "%x", 1.0), each.sub("%x", 1.0), each.intrinsic("fabs", "%x"))
    each.div(larger, 2.0)
    kinds = [line.split("=")[1].split() for line in each.e.lines]
    assert [words[0] for words in kinds] == ["fcmp", "fsub", "call", "select", "fdiv"]
    assert all(name in words for words in kinds)
    assert "0x3FF0000000000000" in kinds[0][-1]
