"""Programs with the public functions of strings, for TensorFlow 1.15 and for Flowstone.

Each builds nodes in the default graph and gives what is fetched. `NAMED` are compared with their nodes' names
and types, `VALUES` with their values and static shapes, `MISTAKES` with the class of their errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Program = "Callable[[Any], Any]"

NAMED: dict[str, Program] = {
    "string_join": lambda tf: tf.string_join(["a", ["b", "c"]], "-"),
    "reduce_join": lambda tf: tf.reduce_join([["a", "b"], ["c", "d"]], 0),
    "reduce_join of axes": lambda tf: tf.reduce_join(
        tf.constant([["a", "b"], ["c", "d"]]), axis=[0, 1], keep_dims=True, separator=".", name="rj"
    ),
    "reduce_join of all": lambda tf: tf.reduce_join([["a", "b"], ["c", "d"]]),
    "reduce_join of any rank": lambda tf: tf.reduce_join(
        tf.placeholder_with_default(tf.constant([["a", "b"], ["c", "d"]]), None)
    ),
    "reduce_join, older names": lambda tf: tf.reduce_join([["a", "b"]], reduction_indices=1, keep_dims=True),
    "string_split": lambda tf: tf.string_split(["a b", "", " c"]),
    "string_split at a delimiter": lambda tf: tf.string_split(["a,b", ",c"], delimiter=",", skip_empty=False),
    "string_split by position": lambda tf: tf.string_split(["a,b;c"], ",;"),
    "strings.split": lambda tf: tf.strings.split(["a  b", "c"]),
    "strings.split at most": lambda tf: tf.strings.split(["a,b,c"], ",", maxsplit=1, name="sp"),
    "substr": lambda tf: tf.substr(["hello", "world"], -3, 2),
    "strings.substr": lambda tf: tf.strings.substr("aé€", 1, 2, unit="UTF8_CHAR", name="part"),
    "as_string": lambda tf: tf.as_string([1.5, -2.0], precision=2, width=7, fill="0"),
    "string_to_number": lambda tf: tf.string_to_number(["1.5", "-2"]),
    "string_to_number of ints": lambda tf: tf.strings.to_number("12", tf.int64, name="n"),
    "string_to_hash_bucket": lambda tf: tf.string_to_hash_bucket(["a", "b"], 1000),
    "string_to_hash_bucket_fast": lambda tf: tf.string_to_hash_bucket_fast(["a", "b"], 1000),
    "string_to_hash_bucket_strong": lambda tf: tf.string_to_hash_bucket_strong(["a", "b"], 1000, key=[1, 2]),
    "strings.to_hash_bucket": lambda tf: tf.strings.to_hash_bucket(["a", "b"], 1000),
    "strings.to_hash_bucket_fast": lambda tf: tf.strings.to_hash_bucket_fast(["a", "b"], 1000),
    "strings.to_hash_bucket_strong": lambda tf: tf.strings.to_hash_bucket_strong(["a"], 1000, [3, 4]),
    "encode_base64": lambda tf: tf.encode_base64(["a", "bc"], pad=True),
    "decode_base64": lambda tf: tf.decode_base64("YmM"),
    "regex_replace": lambda tf: tf.regex_replace(["banana"], "a(.)", r"<\1>"),
    "regex_replace of tensors": lambda tf: tf.strings.regex_replace(
        ["banana"], tf.constant("a"), "o", replace_global=False
    ),
    "strings.regex_full_match": lambda tf: tf.strings.regex_full_match(["ab", "abc"], "a."),
    "regex_full_match of a tensor": lambda tf: tf.strings.regex_full_match(["ab", "b"], tf.constant("a.")),
    "strings.length": lambda tf: tf.strings.length(["aé", ""], unit="UTF8_CHAR"),
    "strings.lower": lambda tf: tf.strings.lower("ÄB"),
    "strings.upper": lambda tf: tf.strings.upper("äb", encoding="utf-8"),
    "strings.strip": lambda tf: [tf.strings.strip([" a "]), tf.string_strip(" b ")],
    "strings.format": lambda tf: tf.strings.format("{}: {}", ([1, 2], "x")),
    "strings.join": lambda tf: tf.strings.join(["a", "b"]),
    "strings.unsorted_segment_join": lambda tf: tf.strings.unsorted_segment_join(["a", "b"], [1, 1], 2, ","),
    "strings.unicode_transcode": lambda tf: tf.strings.unicode_transcode("aé", "UTF-8", "UTF-16-BE"),
    "strings.unicode_script": lambda tf: tf.strings.unicode_script([97, 0x3B1]),
}

VALUES: dict[str, Program] = {
    "unicode_decode": lambda tf: tf.strings.unicode_decode("aé€", "UTF-8"),
    "unicode_decode of malformed text": lambda tf: tf.strings.unicode_decode(
        b"a\xffb", "UTF-8", errors="replace", replacement_char=63
    ),
    "unicode_decode_with_offsets": lambda tf: list(tf.strings.unicode_decode_with_offsets("aé€", "UTF-8")),
    "unicode_encode": lambda tf: tf.strings.unicode_encode([97, 233], "UTF-8"),
    "unicode_encode of rows": lambda tf: tf.strings.unicode_encode([[97, 233], [98, 99]], "UTF-8"),
    "unicode_encode of a block": lambda tf: tf.strings.unicode_encode([[[97, 233], [98, 99]]], "UTF-16-BE"),
    "unicode_split": lambda tf: tf.strings.unicode_split("aé€", "UTF-8"),
    "unicode_split_with_offsets": lambda tf: list(tf.strings.unicode_split_with_offsets("aé€", "UTF-8")),
    "bytes_split": lambda tf: tf.strings.bytes_split("abc"),
    **{
        f"ngrams {settings}": (
            lambda tf, settings=settings: [
                tf.strings.ngrams([["a", "b", "c"], ["d", "e", "f"]], **settings),
                tf.strings.ngrams(["a", "b", "c"], **settings),
            ]
        )
        for settings in (
            {"ngram_width": 2},
            {"ngram_width": [1, 2], "separator": ""},
            {"ngram_width": 2, "pad_values": "x"},
            {"ngram_width": 3, "pad_values": ("l", "r"), "padding_width": 1},
            {"ngram_width": 9},
            {"ngram_width": 9, "preserve_short_sequences": True},
        )
    },
}

MISTAKES: dict[str, Program] = {
    "a scalar is split": lambda tf: tf.string_split("a b"),
    "a number is split": lambda tf: tf.string_split(["a b"], 5),
    "an unknown kind of result": lambda tf: tf.strings.split(["a b"], result_type="x"),
    "too few tensors": lambda tf: tf.strings.format("{} {}", [1]),
    "a rank that is too low": lambda tf: tf.strings.unicode_encode(97, "UTF-8"),
    "an unknown encoding": lambda tf: tf.strings.unicode_encode([97], "latin-1"),
    "a width of zero": lambda tf: tf.strings.ngrams(["a"], 0),
    "a padding without values": lambda tf: tf.strings.ngrams(["a"], 2, padding_width=1),
    "values that are no strings": lambda tf: tf.strings.ngrams(["a"], 2, pad_values=3),
    "a negative padding": lambda tf: tf.strings.ngrams(["a"], 2, pad_values="x", padding_width=-1),
    "no buckets": lambda tf: tf.string_to_hash_bucket_fast(["a"], 0),
    "a wrong unit": lambda tf: tf.strings.length(["a"], unit="WORD"),
    "shapes that differ": lambda tf: tf.string_join([["a", "b"], ["c"]]),
    "numbers to join": lambda tf: tf.string_join([1, 2]),
    "an axis that is not there": lambda tf: tf.reduce_join([["a"]], 2),
    "a type that numbers have not": lambda tf: tf.string_to_number("1", tf.bool),
}


def evaluate(tf: Any, program: Program) -> dict[str, Any]:
    """The nodes of a program's graph with their types, its static shapes and its values."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        fetches = program(tf)
        nodes = [[op.name, op.type] for op in graph.get_operations()]
        parts = fetches if isinstance(fetches, list) else [fetches]
        shapes = [
            None if part.shape.ndims is None else part.shape.as_list()
            for part in parts
            if not isinstance(part, tf.SparseTensor)
        ]
        values = [_plain(value) for value in session.run(parts)]
    return {"nodes": nodes, "shapes": shapes, "values": values}


def mistake(tf: Any, program: Program) -> str:
    """The class of the error that a mistake ends in."""
    with tf.Graph().as_default():
        try:
            program(tf)
        except Exception as error:
            return type(error).__name__
    return ""


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    array = np.asarray(value, object if isinstance(value, bytes) else None)
    if array.dtype == object:
        return np.vectorize(lambda text: text.decode("latin-1"), otypes=[object])(array).tolist()
    return array.tolist()
