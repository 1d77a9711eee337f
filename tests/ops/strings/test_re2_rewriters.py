"""Automata find the matches and groups that the matcher of all ways finds, from any place of any text."""

from __future__ import annotations

import random
import time

import pytest

from flowstone.ops.strings.linear_matching import LinearMatcher
from flowstone.ops.strings.re2_rewriters import rewriter
from flowstone.ops.strings.re2_syntax import parse

PATTERNS = [
    "a+b?", "(a|ab)(c|bcd)(d*)", "^a.*b$", "(?m)^a$\n^b$", "\\ba+\\b", "\\Ba\\B", "a\\b b", "(a*)*",
    "(a+)+b", "x{2,5}", "a{0}", "", "[^a]*", "(\\w+)@(\\w+)\\.1", "(?i)AbÉ", "(?s).*", ".*", "a|b|",
    "((a)|b)*c",
    "[[:alpha:]]+\\d{1,}", "\\Aab\\z", "(^a|b$)*", "(?m)(^|a)*b", "a*?b", "(é|b)+(.)", "(a)|(b)|(c)",
    "(?:(a)|b)*(c?)", "(a*)(ab)*(b*)", "[à-ž]+", "\\pL+", "[^\\x00-\\x7f]", "(a)(b)|(b)(a)|(.)(.)",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_texts(pattern):
    matcher, draw = LinearMatcher(parse(pattern), 9), random.Random(pattern)
    found = rewriter(matcher, range(1, 10))
    assert found is not None
    texts = [
        "".join(draw.choice("aabbccxd \n@.A1_éж\udc80") for _ in range(draw.randrange(9))) for _ in range(150)
    ]
    for text in dict.fromkeys(texts):
        for begin in range(len(text) + 1):
            assert found.match(text, begin) == matcher.match(text, begin), (text, begin)


def test_groups_that_are_not_asked_for_have_no_registers():
    matcher = LinearMatcher(parse("(a)(b)(c)"), 3)
    some, every = rewriter(matcher, [3]), rewriter(matcher, [1, 2, 3])
    assert some.match("xabc", 0) == [1, 4, 3, 4]
    assert every.match("xabc", 0) == [1, 4, 1, 2, 2, 3, 3, 4]
    assert some.registers < every.registers


@pytest.mark.parametrize("pattern", ["(a|b)*a(a|b){14}", "([ab]*a[ab]{9}|[bc]*c[bc]{9}){1,5}"])
def test_what_would_be_large_is_none_soon(pattern):
    began = time.process_time()
    assert rewriter(LinearMatcher(parse(pattern), 2), [1, 2]) is None
    assert time.process_time() - began < 5
