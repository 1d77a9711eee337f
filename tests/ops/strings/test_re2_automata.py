"""Automata say of every text of ASCII whether a pattern fits it, as the matcher of all ways does."""

from __future__ import annotations

import random
import time

import pytest

from flowstone.ops.strings.linear_matching import LinearMatcher
from flowstone.ops.strings.re2_automata import DEAD, STRANGE, automaton
from flowstone.ops.strings.re2_syntax import parse

PATTERNS = [
    "a+b?", "(a|ab)(c|bcd)(d*)", "^a.*b$", "(?m)^a$\n^b$", "\\ba+\\b", "\\Ba\\B", "a\\b b", "(a*)*",
    "(a+)+b", "x{2,5}", "a{0}", "", "[^a]*", "\\w+@\\w+\\.1", "(?i)AbC", "(?s).*", ".*", "a|b|", "((a)|b)*c",
    "[[:alpha:]]+\\d{1,}", "\\Aab\\z", "(^a|b$)*", "(?m)(^|a)*b", "a*?b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_texts(pattern):
    matcher = LinearMatcher(parse(pattern), 9)
    found = automaton(matcher)
    assert found is not None
    draw = random.Random(pattern)
    texts = ["".join(draw.choice("aabbccxd \n@.A1_") for _ in range(draw.randrange(9))) for _ in range(300)]
    for text in dict.fromkeys(texts):
        expected = matcher.match(text, 0, whole=True) is not None
        assert bool(found.ends[found.state_after(text.encode())]) == expected, text


def test_states_that_are_not_left():
    found = automaton(LinearMatcher(parse("ab*"), 0))
    assert found.state_after(b"xab") == DEAD and found.state_after("aé".encode()) == STRANGE
    assert found.table[DEAD].tolist() == [DEAD] * 256 and found.table[STRANGE].tolist() == [STRANGE] * 256
    assert not found.ends[DEAD] and not found.ends[STRANGE]


@pytest.mark.parametrize("pattern", ["(a|b)*a(a|b){14}", "([ab]*a[ab]{9}|[bc]*c[bc]{9}){1,5}"])
def test_what_would_be_large_is_none_soon(pattern):
    began = time.process_time()
    assert automaton(LinearMatcher(parse(pattern), 1)) is None
    assert time.process_time() - began < 5
