"""Strings: joined, split, cut, formatted, hashed, and in other encodings."""

from __future__ import annotations

import math

import numpy as np

from op_cases import bools, case, ints, listed, literal, normal, strings

WORDS = strings(["a b  c", "", " ", "x,y;;z", "ü ß€"])
GRID = strings([["ab", "c"], ["", "de\0f"], ["é", "\xff"]])
NONE = literal(np.zeros((0, 2), object), "string")
NO_ROW = literal(np.zeros(0, object), "string")
BYTES = strings([b"", b"\0", b"\xff\xfe\xfd~", b"abc", b"abcd", b"hello world" * 9])
UTF8 = strings(
    [
        b"",
        "aé€😀b".encode(),
        b"\xffa\x80\x80\xe2\x82b\xe2",
        b"\x80\x80x",
        b"\xf0\x9f\x98",
        b"\xed\xa0\x80!",
        b"\xc0\xaf\xf5\x80",
        b"tab\there\x07\x1f\x7f\0",
        "\ufffd\ufeff\u2028".encode(),
    ]
)
CASES_OF_LETTERS = strings(["aÀßİǅ1".encode(), b"\xffA\xc3b", "ŉﬁΣσςΑΣ".encode(), b"", b"Plain 5X"])
FLOATS = literal([1.5, -2.25e10, 1e-7, 0.0, -0.0, math.nan, math.inf, -math.inf, 123456789.0, 0.1], "T")
NUMBERS = ["1", " 1 ", "+1", "-1", "\t7\n", "-0", "007", "2147483647", "-2147483648", "\x0b\x0c\r9"]
DECIMALS = [
    *("1.5", "1e3", ".5", "5.", "inf", "-Infinity", "nan", "NaN", "+nan", "0x10", "-0X1p3", "0x.8", "1e400"),
    *("-1e400", "1e-400", "nan(1)", "3.4028235e38", "0.1", "16777217", "123456789012345678901234567890"),
]
NO_NUMBERS = ["", "  ", "1 2", "1_0", "1e", "0b1", "infin", "1f", "1\0", "--1", "+-1", "+", "１", "0x", "1,5"]
NO_INTEGERS = [*NO_NUMBERS, "1.5", "1e3", "0x10", "inf"]
ENCODINGS = [
    *("utf8", "UTF-16", "UTF-16LE", "UTF-16-BE", "UTF-32-BE", "US-ASCII", "ISO-8859-1", "latin1"),
    *("KOI8-R", "ISO-8859-15"),
]
_MATCHED = [
    *(
        "",
        "a",
        "b",
        "ab",
        "aab",
        "abc",
        "abcabc",
        "xaabby",
        "aaaa",
        "foo bar",
        "a.b",
        "K",
        "a\nb",
        "a\nb\n",
    ),
    *("héllo wörld", "日本語", "Σςσ", "K\u212a", "sſS", "ǅǆ", "  two  words ", "2024-01-31", "x=1, y=22"),
    *(b"a\xffb", b"\xe6\x97", b"\xff\xe2\x82b", "a\0b", "[x]", "\\", "aXbx", "don't", "_w1", "\x1f\x7f"),
]
MATCHED = strings([text if isinstance(text, bytes) else text.encode() for text in _MATCHED])
PATTERNS = [
    *(
        "",
        "a",
        "b*",
        "|a",
        "(|a)*",
        "a|ab",
        "(a|ab)(c|bcd)?",
        "(b+)(c?)",
        "x*",
        "o*?",
        "a{2}",
        "a{1,2}?",
        "a{2,}",
    ),
    *(
        ".",
        ".*",
        "(?s).*",
        "^",
        "$",
        "(?m)^",
        "(?m)$",
        "(?m)^a$",
        r"\A",
        r"\z",
        r"\b",
        "^a",
        "b$",
        "^|b",
    ),
    *(r"\d+", r"\D", r"\s+", r"\S+", r"\w+", r"\W+", "[a-c]", "[^a]", "[]a]", "[^]a]", "[a-]", r"[\d\s]+"),
    *("[[:alpha:]]+", "[[:^alpha:]]", "[[:punct:]]", r"\pL+", r"\p{Greek}", r"\PL", r"\p{Lu}", r"\p{^Lu}"),
    *(
        "(?i)k",
        "(?i)S",
        "(?i)σ",
        "(?i)ǆ",
        "(?i)[x-z]",
        "(?i:A)b",
        "(?U)a+",
        "(?U)a+?",
        "a{,2}",
        "a{2",
        "x{2}y",
    ),
    *(
        r"\Qa.b\E",
        r"\x61",
        r"\x{e9}",
        r"\141",
        r"\x00",
        r"\.",
        r"\[x\]",
        r"\\",
        "(?P<n>a)(?:b)",
        "é|ö",
        "[é-ö]",
    ),
    *(
        r"(\d+)-(\d+)-(\d+)",
        r"(\w)=(\d+)",
        "(a)(b)(c)(a)(b)(c)",
        "((a)|b)+",
        "(a*)+b",
        "(a|b)*c",
        "()",
        "(?:)",
    ),
    *("日.", r"\w*é", "(?:ab)+", "[a-b-c]", r"[\x00-\x1f]", "a??", "(?m)(^.)", r"(?s)a.b", "$^|a", "a.c"),
]
MALFORMED = [
    *("a(b", "a)b", "*a", "a**", "a{2,1}", "a{1001}", "[a", "[z-a]", r"\8", "(?=a)", "(?P<n>a", "(?i", r"\Z"),
    *("a\\", r"\pX", r"\p{Foo}", "(?<=a)", "a+++", "x{2}{3}", r"\x{110000}", "(a{500}){500}"),
    *("(?z)", r"\h", r"[\h]", r"\1", "(?P=n)", "a|*", r"\x4", r"\E", r"[a-\d]", "(?!a)", "{2}", "^*$**"),
]
FILLS = ["", " ", "+", "-", "0", "#"]


def ngrams(**attributes):
    """N-grams of a ragged matrix of rows of 3, 1, 0 and 3 strings."""
    given = {
        "separator": "|",
        "ngram_widths": [2],
        "left_pad": "L",
        "right_pad": "R",
        "pad_width": -1,
        "preserve_short_sequences": False,
    }
    splits = attributes.pop("splits", [0, 3, 4, 4, 7])
    return case(
        "StringNGrams",
        strings(list("abcdefg")),
        literal(splits, "int64"),
        dtypes="string",
        **{**given, **attributes},
    )


CASES = [
    # ---- joined
    case("StringJoin", [GRID, strings("-"), GRID], dtypes="string", separator="é"),
    case("StringJoin", [strings("a")], dtypes="string"),
    case("StringJoin", [strings("a"), strings("b")], dtypes="string", separator=", "),
    case("StringJoin", [NONE, strings("b")], dtypes="string"),
    case("StringJoin", [GRID, WORDS], dtypes="string", error="InvalidArgumentError"),
    case("StringJoin", [WORDS, strings(["x"])], dtypes="string", error="InvalidArgumentError"),
    [
        case("ReduceJoin", GRID, axes, dtypes="string", keep_dims=keep, separator=".")
        for axes in ([0], [1], [-1], [0, 1], [1, 0], literal(np.zeros(0, np.int32)))
        for keep in (False, True)
    ],
    case("ReduceJoin", strings("a"), literal(np.zeros(0, np.int32)), dtypes="string"),
    [case("ReduceJoin", NONE, axes, dtypes="string", separator=".") for axes in ([0], [1], [0, 1])],
    case("ReduceJoin", GRID, [0, -2], dtypes="string", error="InvalidArgumentError"),
    case("ReduceJoin", GRID, [2], dtypes="string", error="OutOfRangeError"),
    case("ReduceJoin", strings("a"), [0], dtypes="string", error="OutOfRangeError"),
    case("ReduceJoin", GRID, [[0]], dtypes="string", error="ValueError"),
    case("UnsortedSegmentJoin", GRID, [1, 0, 1], 3, dtypes="string", separator=":"),
    case("UnsortedSegmentJoin", GRID, literal([1, 0, 1], "int64"), literal(2, "int64"), dtypes="string"),
    case("UnsortedSegmentJoin", GRID, [[1, 0], [2, 1], [1, 1]], 4, dtypes="string", separator=":"),
    case("UnsortedSegmentJoin", NO_ROW, literal(np.zeros(0, np.int32)), 2, dtypes="string"),
    [
        case("UnsortedSegmentJoin", GRID, ids, count, dtypes="string", error="InvalidArgumentError")
        for ids, count in (([1, -1, 1], 3), ([1, 3, 1], 3), ([1, 0], 3), ([0, 0, 0], -1))
    ],
    # ---- split
    [
        case(
            "StringSplit",
            WORDS,
            strings(delimiter),
            dtypes="string",
            skip_empty=skip,
            label=f"{ord(delimiter[:1] or '0')}",
        )
        for delimiter in ("", " ", ",", ", ;", "ü")
        for skip in (True, False)
    ],
    case("StringSplit", NO_ROW, strings(" "), dtypes="string"),
    case("StringSplit", GRID, strings(" "), dtypes="string", error="InvalidArgumentError"),
    case("StringSplit", WORDS, strings([" "]), dtypes="string", error="InvalidArgumentError"),
    [
        case("StringSplitV2", WORDS, strings(separator), dtypes="string", maxsplit=most)
        for separator in ("", " ", ";;", "c")
        for most in (-1, 0, 1, 2, -7)
    ],
    case(
        "StringSplitV2",
        strings(["a\tb\nc\x0bd\x0ce\rf\u00a0g", "aaa", "\x1cx"]),
        strings(""),
        dtypes="string",
    ),
    case("StringSplitV2", NO_ROW, strings(""), dtypes="string"),
    case("StringSplitV2", strings("a"), strings(""), dtypes="string", error="InvalidArgumentError"),
    case("StringSplitV2", WORDS, strings([""]), dtypes="string", error="InvalidArgumentError"),
    # ---- parts
    [
        case("Substr", strings(["abc", "defg"]), pos, size, dtypes="string", unit=unit)
        for pos, size in ((0, 2), (-3, 2), (3, 1), (1, -1), (1, 100), (-1, 1), (-2, 2), (2, 0))
        for unit in ("BYTE", "UTF8_CHAR")
    ],
    [
        case("Substr", strings([text]), pos, size, dtypes="string", unit="UTF8_CHAR")
        for text in ("aé€😀b".encode(), b"\xffa\x80\x80\xe2\x82b\xe2", b"\x80\x80x")
        for pos, size in ((0, 1), (1, 2), (-1, 1), (-2, 1), (2, -1), (1, 0))
    ],
    case("Substr", strings(""), 0, 1, dtypes="string"),
    case("Substr", NONE, 0, 1, dtypes="string"),
    case("Substr", strings(["abc", "defg"]), [0, 1], [1, 2], dtypes="string"),
    case(
        "Substr",
        strings(["abc", "defg"]),
        literal([0, -1], "int64"),
        literal([1, 2], "int64"),
        dtypes="string",
    ),
    case("Substr", strings([["abcd", "defg"], ["qqqqq", "rrrrr"]]), [0, 1], [1, 2], dtypes="string"),
    case("Substr", strings("abcd"), [0, 1], [1, 2], dtypes="string"),
    case("Substr", strings([["abcd"], ["x"]]), [[0, 1]], [[1, 2]], dtypes="string"),
    [
        case(
            "Substr",
            strings(["abc", "defg"]),
            pos,
            1,
            dtypes="string",
            unit=unit,
            error="InvalidArgumentError",
        )
        for pos in (4, -4, 2**31 - 1)
        for unit in ("BYTE", "UTF8_CHAR")
    ],
    case("Substr", strings(["abc"]), -2, -2, dtypes="string", unit="UTF8_CHAR", error="InvalidArgumentError"),
    case("Substr", strings(["abc", "defg"]), [0, 9], [1, 2], dtypes="string", error="InvalidArgumentError"),
    case("Substr", strings(["abc", "defg"]), [0, 1], [1], dtypes="string", error="InvalidArgumentError"),
    case(
        "Substr", strings(["abc", "defg", "h"]), [0, 1], [1, 1], dtypes="string", error="InvalidArgumentError"
    ),
    [
        case("StringLength", one, dtypes="string", unit=unit)
        for one in (UTF8, NONE, GRID)
        for unit in ("BYTE", "UTF8_CHAR")
    ],
    # ---- letters
    [
        case(f"String{kind}", one, dtypes="string", encoding=encoding)
        for kind in ("Lower", "Upper")
        for one in (CASES_OF_LETTERS, NONE)
        for encoding in ("", "utf-8")
    ],
    [
        case(f"String{kind}", GRID, dtypes="string", encoding="UTF-8", error="InvalidArgumentError")
        for kind in ("Lower", "Upper")
    ],
    case(
        "StringStrip",
        strings([b" \t\n\x0b\x0c\ra b\0 ", "\u00a0x\u2003".encode(), b"", b" ", b"\x1cx"]),
        dtypes="string",
    ),
    case("StringStrip", NONE, dtypes="string"),
    # ---- numbers
    case("AsString", FLOATS, dtypes="float32 float64 float16 bfloat16"),
    [
        case(
            "AsString",
            FLOATS,
            dtypes="float32 float64",
            fill=fill,
            width=width,
            label=f"fill{ord(fill or 'x')}",
            **notation,
        )
        for fill in FILLS
        for width in (-1, 0, 12)
        for notation in ({}, {"precision": 2}, {"scientific": True}, {"shortest": True, "precision": 4})
        if width != 0 or not notation
    ],
    case("AsString", FLOATS, dtypes="float32", precision=0),
    case("AsString", normal(2, 3), dtypes="complex64 complex128", precision=3),
    case(
        "AsString",
        literal([complex(math.inf, -0.0), complex(math.nan, 1)], "T"),
        dtypes="complex64",
        width=7,
        fill="+",
    ),
    case("AsString", normal(2, 3), dtypes="int8 int16 int32 int64 uint8 uint16 uint32 uint64"),
    [
        case("AsString", normal(3), dtypes="int32 uint8", width=6, fill=fill, label=f"fill{ord(fill or 'x')}")
        for fill in FILLS
    ],
    [case("AsString", bools((4,)), dtypes="bool", width=8, fill=fill) for fill in ("", "+", "0")],
    [case("AsString", GRID, dtypes="string", width=6, fill=fill) for fill in ("", "-", "+", "0")],
    [case("AsString", GRID, dtypes="string", precision=1, width=width) for width in (-1, 3)],
    case("AsString", GRID, dtypes="string", shortest=True),
    case("AsString", normal(0, 2), dtypes="float32 int32 bool string complex64"),
    [
        case("AsString", normal(2), dtypes=dtypes, error="InvalidArgumentError", **attributes)
        for dtypes, attributes in (
            ("float32", {"scientific": True, "shortest": True}),
            ("int32 bool", {"scientific": True}),
            ("int32 bool", {"shortest": True}),
            ("int32 bool", {"precision": 3}),
            ("float32 int32", {"fill": "ab"}),
            ("float32 int32", {"fill": "x"}),
        )
    ],
    [
        case("StringToNumber", strings(NUMBERS), dtypes="string", out_type=dtype)
        for dtype in ("float32", "float64", "int32", "int64")
    ],
    [
        case("StringToNumber", strings(["0", "+7", "4294967295"]), dtypes="string", out_type=d)
        for d in ("uint32", "uint64")
    ],
    [
        case("StringToNumber", strings(DECIMALS), dtypes="string", out_type=dtype)
        for dtype in ("float32", "float64")
    ],
    case(
        "StringToNumber",
        strings(["9223372036854775807", "-9223372036854775808"]),
        dtypes="string",
        out_type="int64",
    ),
    case("StringToNumber", strings("18446744073709551615"), dtypes="string", out_type="uint64"),
    [case("StringToNumber", NONE, dtypes="string", out_type=dtype) for dtype in ("float32", "int64")],
    [
        case(
            "StringToNumber",
            strings([["1"], [text]]),
            dtypes="string",
            out_type=dtype,
            error="InvalidArgumentError",
        )
        for text in NO_NUMBERS
        for dtype in ("float32",)
    ],
    [
        case("StringToNumber", strings([text]), dtypes="string", out_type=dtype, error="InvalidArgumentError")
        for text in NO_INTEGERS
        for dtype in ("int32",)
    ],
    [
        case("StringToNumber", strings([text]), dtypes="string", out_type=dtype, error="InvalidArgumentError")
        for text, dtype in (
            ("2147483648", "int32"),
            ("-2147483649", "int32"),
            ("9223372036854775808", "int64"),
            ("4294967296", "uint32"),
            ("-1", "uint32"),
            ("-1", "uint64"),
            ("-0", "uint32"),
            ("1234567890123456789012", "int64"),
            ("18446744073709551616", "uint64"),
        )
    ],
    # ---- base64
    [case("EncodeBase64", one, dtypes="string", pad=pad) for one in (BYTES, NONE) for pad in (True, False)],
    case(
        "DecodeBase64",
        strings(["YWJj", "YWI", "YWI=", "YW", "YW==", "", "__--", "YX", "YWJjYW=="]),
        dtypes="string",
    ),
    case("DecodeBase64", NONE, dtypes="string"),
    [
        case("DecodeBase64", strings([text]), dtypes="string", error="InvalidArgumentError")
        for text in (
            b"YWI==",
            b"Y",
            b"YW=",
            b"YW=a",
            b"Y W",
            b"YWJj\n",
            b"//++",
            b"=",
            b"====",
            b"\xff\xff\xff\xff",
            b"YWJjYWJj=",
        )
    ],
    # ---- regular expressions
    [
        [
            case("StaticRegexFullMatch", MATCHED, dtypes="string", pattern=pattern, label=str(i)),
            case(
                "StaticRegexReplace",
                MATCHED,
                dtypes="string",
                pattern=pattern,
                rewrite=r"<\0>",
                replace_global=i % 3 > 0,
                label=str(i),
            ),
        ]
        for i, pattern in enumerate(PATTERNS)
    ],
    [
        case(
            "RegexReplace",
            MATCHED,
            strings("(b)(c)?"),
            strings(rewrite),
            dtypes="string",
            replace_global=every,
            label=str(i),
        )
        for i, rewrite in enumerate(
            (r"[\1]", r"\2\1", r"\3", r"\\", "x\\", r"x\ay", "", "é", r"\0\0", "$1", r"\10", "{0}\\\\g<1>")
        )
        for every in (True, False)
    ],
    case("RegexFullMatch", MATCHED, strings("[ab]+"), dtypes="string"),
    case("RegexFullMatch", NONE, strings("[ab]+"), dtypes="string"),
    case("RegexReplace", NONE, strings("a"), strings("b"), dtypes="string"),
    case(
        "StaticRegexReplace",
        strings(["", "foo bar", " a ", "_"]),
        dtypes="string",
        pattern=r"\B",
        rewrite="|",
    ),
    case("RegexReplace", strings("banana"), strings("an"), strings("-"), dtypes="string"),
    [
        case(
            "StaticRegexFullMatch",
            MATCHED,
            dtypes="string",
            pattern=pattern,
            error="InvalidArgumentError",
            label=str(i),
        )
        for i, pattern in enumerate(MALFORMED)
    ],
    case(
        "StaticRegexReplace", MATCHED, dtypes="string", pattern="a(", rewrite="", error="InvalidArgumentError"
    ),
    case("RegexFullMatch", MATCHED, strings("a("), dtypes="string", error="InvalidArgumentError"),
    case("RegexFullMatch", MATCHED, strings(["a"]), dtypes="string", error="InvalidArgumentError"),
    case("RegexReplace", MATCHED, strings("a("), strings(""), dtypes="string", error="InvalidArgumentError"),
    case("RegexReplace", MATCHED, strings("a"), strings([""]), dtypes="string", error="InvalidArgumentError"),
    # ---- hashes
    [
        case(f"StringToHashBucket{kind}", one, dtypes="string", num_buckets=buckets, **key)
        for kind, key in (("", {}), ("Fast", {}), ("Strong", {"key": [1, -2]}))
        for one in (BYTES, GRID, NONE)
        for buckets in (1, 10, 2**40 + 1)
    ],
    case(
        "StringToHashBucketStrong",
        GRID,
        dtypes="string",
        num_buckets=9,
        key=[1, 2, 3],
        error="InvalidArgumentError",
    ),
    case("StringToHashBucketFast", GRID, dtypes="string", num_buckets=0, error="ValueError"),
    case(
        "Fingerprint",
        normal(3, 4),
        strings("farmhash64"),
        dtypes="float32 float64 int8 int32 int64 uint8 bool complex64 string",
    ),
    case("Fingerprint", normal(3), strings("farmhash64"), dtypes="float16 int16 string"),
    case("Fingerprint", normal(2, 3, 2), strings("farmhash64"), dtypes="float32 string"),
    case("Fingerprint", normal(0, 2), strings("farmhash64"), dtypes="float32"),
    case("Fingerprint", normal(2, 0), strings("farmhash64"), dtypes="float32"),
    case("Fingerprint", normal(), strings("farmhash64"), error="InvalidArgumentError"),
    case("Fingerprint", normal(2), strings("md5"), error="InvalidArgumentError"),
    # ---- formats
    case(
        "StringFormat",
        [ints(0, 9, (2, 3), "int32"), normal(2), strings("a\"b'\\\n\x01é")],
        dtypes="float32",
        template="{} and {}: {}.",
        placeholder="{}",
    ),
    case("StringFormat", listed(), dtypes="string", template="x"),
    [
        case(
            "StringFormat",
            [literal(np.arange(math.prod(shape)).reshape(shape), "int32")],
            dtypes="string",
            template="%s!",
            summarize=summarize,
        )
        for shape in ((), (3,), (10,), (2, 9), (9, 2), (3, 4, 4), (2, 2, 2, 2), (0,), (2, 0), (0, 2))
        for summarize in (3, 1, -1, 0)
    ],
    case(
        "StringFormat",
        [literal([0.1, 1 / 3, 1e10, math.nan, math.inf, 12345.678], "T")],
        dtypes="float32 float64 float16 bfloat16",
        template="%s",
    ),
    case("StringFormat", [normal(2)], dtypes="int8 uint8 int64 bool string complex64", template="%s"),
    case("StringFormat", [normal(2)], template="%s %s", error="ValueError"),
    # ---- Unicode
    case(
        "UnicodeScript",
        literal([97, 0x3B1, 0x3042, 0x4E00, -1, 0x110000, 48, 0x378, 0xD800, 0x10FFFF, 0x1F600]),
        dtypes="int32",
    ),
    case("UnicodeScript", literal(np.arange(0, 0x20000, 61, dtype=np.int32)), dtypes="int32"),
    [
        case(
            op,
            UTF8,
            dtypes="string",
            input_encoding="UTF-8",
            errors=errors,
            replace_control_characters=controls,
            replacement_char=replacement,
            **more,
        )
        for op, more in (
            ("UnicodeTranscode", {"output_encoding": "UTF-8"}),
            ("UnicodeDecode", {}),
            ("UnicodeDecodeWithOffsets", {}),
        )
        for errors in ("replace", "ignore")
        for controls, replacement in ((False, 65533), (True, 63), (False, 0x20AC))
    ],
    [
        case("UnicodeTranscode", UTF8, dtypes="string", input_encoding="UTF-8", output_encoding=output)
        for output in ("UTF-16-BE", "UTF-32-BE")
    ],
    [
        case(
            "UnicodeTranscode",
            strings([b"a\xe9\x81\x80", b"\xfe\xff\0a", b"\xef\xbb\xbfx", b"\xd8\x3d\xde\0"]),
            dtypes="string",
            input_encoding=encoding,
            output_encoding="UTF-8",
        )
        for encoding in ENCODINGS
    ],
    [
        case(
            "UnicodeDecodeWithOffsets",
            strings([b"\0a\xd8\x3d\xde\0\xd8\x3d", b"\0", b"\0\0\0a"]),
            dtypes="string",
            input_encoding=encoding,
        )
        for encoding in ("UTF-16-BE", "UTF-32-BE", "ISO-8859-1")
    ],
    [
        case(
            op,
            one,
            dtypes="string",
            input_encoding=encoding,
            errors=errors,
            error="InvalidArgumentError",
            **more,
        )
        for op, more in (
            ("UnicodeTranscode", {"output_encoding": "UTF-8"}),
            ("UnicodeDecode", {}),
            ("UnicodeDecodeWithOffsets", {}),
        )
        for one, encoding, errors in ((UTF8, "UTF-8", "strict"), (GRID, "nonsense", "replace"))
    ],
    case(
        "UnicodeTranscode",
        GRID,
        dtypes="string",
        input_encoding="UTF-8",
        output_encoding="UTF-8",
        replacement_char=0x110000,
        error="InvalidArgumentError",
    ),
    [
        case(op, one, dtypes="string", input_encoding="UTF-8", **more)
        for op, more in (
            ("UnicodeTranscode", {"output_encoding": "UTF-8"}),
            ("UnicodeDecode", {}),
            ("UnicodeDecodeWithOffsets", {}),
        )
        for one in (strings("aé"), NONE, GRID)
    ],
    [
        case(
            "UnicodeEncode",
            literal([97, 0x20AC, 0x1F600, 0, 0xD800, 0x110000, -1, 0xFFFE], "int32"),
            literal([0, 1, 1, 4, 5, 8], "int64"),
            dtypes="string",
            output_encoding=output,
            errors=errors,
        )
        for output in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
        for errors in ("replace", "ignore")
    ],
    case(
        "UnicodeEncode",
        literal([-1, 97], "int32"),
        literal([0, 2], "int32"),
        dtypes="string",
        output_encoding="UTF-8",
        replacement_char=63,
    ),
    [
        case(
            "UnicodeEncode",
            literal([97, 98], "int32"),
            literal(splits, "int64"),
            dtypes="string",
            output_encoding="UTF-8",
            error="InvalidArgumentError",
        )
        for splits in ([0, 1], [0, 3], [1, 2], [0, 2, 1], [0, -1, 2])
    ],
    case(
        "UnicodeEncode",
        literal([-1], "int32"),
        literal([0, 1], "int64"),
        dtypes="string",
        output_encoding="UTF-8",
        errors="strict",
        error="InvalidArgumentError",
    ),
    # ---- n-grams
    [
        ngrams(ngram_widths=widths, pad_width=pad, preserve_short_sequences=keep)
        for widths in ([2], [1, 3], [5], [4, 2], [])
        for pad in (-1, 0, 1, 2)
        for keep in (False, True)
        if widths or not keep or pad >= 0
    ],
    ngrams(ngram_widths=[], preserve_short_sequences=True, error="InvalidArgumentError"),
    ngrams(splits=[0, 0, 7], left_pad="", right_pad="é", separator=""),
    [
        ngrams(splits=splits, error="InvalidArgumentError")
        for splits in ([0, 3], [1, 7], [0, 4, 3, 7], [0, 8], [0, -1, 7])
    ],
    ngrams(ngram_widths=[0], error="InvalidArgumentError"),
]
