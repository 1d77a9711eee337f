"""Machine code rewrites many texts as Python does one by one, whatever the pattern and the bytes."""

from __future__ import annotations

import random

import pytest

from flowstone.framework import flags
from flowstone.framework.machine import string_code
from flowstone.native import offers
from flowstone.native.strings.text_rewriters import TextRewriters
from flowstone.ops.strings.linear_matching import LinearMatcher
from flowstone.ops.strings.re2_patterns import Pattern, rewriting
from flowstone.ops.strings.re2_rewriters import rewriter
from flowstone.ops.strings.re2_syntax import parse

PATTERNS = [
    "(a|ab)(c|bcd)(d*)", "^a.*b$", "\\b", "\\Ba\\B", "(a*)*", "(a+)+b", "", "[^a]*", "(\\w+) (\\w+)",
    "(?s).*", "a|b|", "((a)|b)*c", "(?m)(^|a)*b", "(é|b)+(.)", "(a)|(b)|(c)", "[à-ž]+",
    "(?i)ÉÀ", "[^\\x00-\\x7f]", "(.)(.)", "$",
]  # fmt: skip
CHARACTERS = ["a", "b", "c", "d", " ", "\n", "\0", "é", "É", "ж", "日", "𝄞"]
BYTES = [
    b"a",
    b"b",
    b"\xc3",
    b"\xa9",
    b"\xe6\x97",
    b"\xa5",
    b"\xf0\x9d",
    b"\x84\x9e",
    b"\xed\xa0\x80",
    b"\xff",
    b"\xe0\x80\x80",
]


@pytest.fixture(scope="module")
def code() -> TextRewriters:
    return TextRewriters()


def automaton(pattern, *groups):
    return rewriter(LinearMatcher(parse(pattern), 9), groups)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_texts(code, pattern, once, monkeypatch):
    draw = random.Random(pattern)
    alphabet = [each.encode() for each in CHARACTERS], BYTES
    strings = [b"".join(draw.choices(draw.choice(alphabet), k=draw.randrange(10))) for _ in range(300)]
    one_by_one = Pattern(pattern)
    monkeypatch.setattr(one_by_one, "_limit", -1)
    groups = range(1, one_by_one.groups + 1)
    rewrite = rewriting(rb"<\0>" + b"".join(rb"(\%d)" % i for i in groups))
    replace = one_by_one.replace_first if once else one_by_one.replace_all
    expected = [replace(rewrite, [each])[0] for each in strings]
    assert code(strings, automaton(pattern, *groups), rewrite[0], once).tolist() == expected


def test_results_that_are_much_longer(code):
    found = code([b"aaaa"] * 3, automaton("(a+)", 1), [1] * 1000, False)
    assert found.tolist() == [b"a" * 4000] * 3


def test_nothing_and_what_is_no_bytes(code):
    assert code([], automaton("a"), [b"b"], False).shape == (0,)
    for strange in ("text", None, 3):
        assert code([b"a", strange], automaton("a"), [b"b"], False) is None


def test_kernels_are_offered_it_where_there_is_a_native_tier(monkeypatch):
    offers.offer_all()
    assert isinstance(string_code.text_rewriters(), TextRewriters)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert string_code.text_rewriters() is None
