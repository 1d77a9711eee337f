"""Both matchers find the same, and none goes astray, whatever the pattern and the text.

That both find what RE2 finds is seen in the table of strings.
"""

from __future__ import annotations

import random
import re

import pytest

from flowstone.framework import errors, flags
from flowstone.native import offers
from flowstone.ops.strings.linear_matching import LinearMatcher
from flowstone.ops.strings.re2_costs import UNLIMITED, longest_text
from flowstone.ops.strings.re2_patterns import Pattern, compiled, rewriting
from flowstone.ops.strings.re2_syntax import parse

PATTERNS = [
    *(
        "a",
        "ab|a",
        "(a|ab)(c|bcd)",
        "(a+)(b*)",
        "a*?b",
        "(a|b)+?c",
        "^a|b$",
        r"\bb",
        r"\Bb",
        "(?m)^b",
        "(?m)a$",
    ),
    *("(?:ab)*c", "a{2,3}", "a{0,2}?b", "[^a]b", "(?i)AB", "((a)|(b))*c", "(a*)b(a*)", "c(?:b|a(?:b|c))+"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_both_matchers_agree(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = random.Random(pattern)
    texts = ["".join(made.choices("aabbc\n é", k=made.randint(0, 12))) for _ in range(200)]
    strings = [text.encode() for text in texts]
    quick, linear = Pattern(pattern), Pattern(pattern)
    monkeypatch.setattr(linear, "_limit", -1)
    monkeypatch.setattr(linear, "_whole_limit", -1)
    rewrite = rewriting(rb"<\0>" + b"".join(rb"(\%d)" % (i + 1) for i in range(quick.groups)))
    assert quick.fit(strings) == linear.fit(strings)
    assert quick.replace_all(rewrite, strings) == linear.replace_all(rewrite, strings)
    assert quick.replace_first(rewrite, strings) == linear.replace_first(rewrite, strings)


@pytest.mark.parametrize("letters", ["aabbc\n ", "aabbc\0"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_many_are_rewritten_as_one_is(pattern: str, letters: str) -> None:
    made = random.Random(pattern)
    strings = ["".join(made.choices(letters, k=made.randint(0, 12))).encode() for _ in range(1500)]
    found = Pattern(pattern)
    rewrite = rewriting(rb"<\0>" + b"".join(rb"(\%d)" % (i + 1) for i in range(found.groups)))
    one_by_one = [found.replace_all(rewrite, [each])[0] for each in strings]
    assert found.replace_all(rewrite, strings) == one_by_one


@pytest.mark.parametrize("pattern", PATTERNS)
def test_places_are_those_of_python(pattern: str) -> None:
    made = random.Random(pattern)
    ours, theirs = LinearMatcher(parse(pattern), 3), re.compile(pattern, re.ASCII)
    for _ in range(200):
        text = "".join(made.choices("aabbc", k=made.randint(0, 10)))
        places, match = ours.match(text, 0), theirs.search(text)
        assert (None if places is None else places[:2]) == (None if match is None else list(match.span()))


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*)*x", "(a*)*b", "a*a*a*a*a*a*b", "(?:a?){30}a{30}b", r"(\s+)+$x"],
)
def test_nothing_is_catastrophic(pattern: str) -> None:
    """A matcher that went back and tried again would need longer than anybody waits."""
    texts, short = [b"a" * 3000, b" " * 3000], b"aaab"
    found, fits = Pattern(pattern), re.compile(pattern).fullmatch(short.decode()) is not None
    assert found.fit([*texts, short]) == [False, False, fits]
    assert found.replace_all(rewriting(rb"\0"), [*texts, short]) == [*texts, short]


@pytest.mark.parametrize(
    ("pattern", "anchored", "unlimited"),
    [
        *(
            ("[a-z]+", False, True),
            ("abc", False, True),
            (r"\d+-\d+", True, False),
            ("(?:ab|cd)+", False, True),
        ),
        *((r"(\w+\s)*x", True, False), (".*", True, True), ("^a*b", False, False)),
    ],
)
def test_what_is_sure_to_be_fast(pattern: str, anchored: bool, unlimited: bool) -> None:
    length = longest_text(parse(pattern), anchored)
    assert length > 1000 and (length == UNLIMITED) == unlimited


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|ab)*", "(a*)*", "(?:a|b|a)+c", "(a?b?)*"])
def test_what_is_not(pattern: str) -> None:
    assert longest_text(parse(pattern), False) == 0


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (b"\xff", "invalid UTF-8"),
        (b"(" * 20000 + b")" * 20000, "nests too deeply"),
        (b"(?:(?:a|bc){500}){2}" * 50, ""),
        (rb"\C", "no counterpart"),
        (b"(?:(?:a|b|c|d)?x?){1000}" * 12, "too large"),
    ],
)
def test_what_cannot_be_compiled(pattern: bytes, message: str) -> None:
    if message:
        with pytest.raises(errors.InvalidArgumentError, match=message):
            compiled(pattern)
    else:
        assert compiled(pattern).fit([b"a" * 50000]) == [True]


@pytest.mark.parametrize("native", [2, 0])
def test_many_texts_of_which_some_are_not_ascii(native: int, monkeypatch: pytest.MonkeyPatch) -> None:
    offers.offer_all()
    monkeypatch.setattr(flags, "NATIVE", native)
    texts = [*(b"key %d" % i for i in range(200)), "é".encode(), b"\xff", b"", b"key"]
    expected = [*(i % 2 == 0 for i in range(200)), True, False, False, False]
    assert compiled("(key \\d*[02468]|é)".encode()).fit(texts) == expected
