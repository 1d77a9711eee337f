"""The operations that `text_and_tables_tf1.py` times: their inputs and the graph that is run.

CASES: a name, what makes the inputs by name, and ``build(**tensors)``, which gives the fetches and the
operations that are run once before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from tf1 import tf

Inputs = dict[str, np.ndarray[Any, Any]]
Build = Callable[..., tuple[Any, list[Any]]]

COUNT = int(os.environ.get("ELEMENTS", "100000"))
CASES: list[tuple[str, Callable[[], Inputs], Build]] = []
_WORDS = np.array(["alpha", "beta", "gamma", "delta", "eta", "iota", "kappa", "lambda", "mu", "omicron"])


def case(name: str, make: Callable[[], Inputs], build: Callable[..., Any]) -> None:
    """An operation without preparation."""
    CASES.append((name, make, lambda **tensors: (build(*tensors.values()), [])))


# ---- inputs


def as_objects(texts: Any) -> np.ndarray[Any, Any]:
    return np.array([str(text).encode() for text in texts] + [b""], object)[:-1]


def short(count: int = COUNT, seed: int = 0) -> np.ndarray[Any, Any]:
    """Texts of two words, of 5 to 15 bytes."""
    words = np.random.RandomState(seed).choice(_WORDS, (count, 2))
    return as_objects([f"{a} {b}" for a, b in words])


def long(count: int = COUNT) -> np.ndarray[Any, Any]:
    """Texts of about 100 bytes."""
    words = np.random.RandomState(0).choice(_WORDS, (count, 16))
    return as_objects([" ".join(row) for row in words])


def accented(count: int = COUNT) -> np.ndarray[Any, Any]:
    """Short texts, most with a character that is not ASCII."""
    words = np.random.RandomState(0).choice(["näive", "café", "Ωmega", "plain", "straße"], (count, 2))
    return as_objects([f"{a} {b}".encode().decode() for a, b in words])


def keys(count: int = COUNT, seed: int = 0) -> np.ndarray[Any, Any]:
    """Texts that differ, about 10 bytes."""
    order = np.random.RandomState(seed).permutation(count)
    return as_objects([f"key {n:06d}" for n in order])


def numbers(count: int = COUNT, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers that differ."""
    return np.random.RandomState(seed).permutation(count).astype(np.int64) * 1_000_003


def floats(count: int = COUNT) -> np.ndarray[Any, Any]:
    return np.random.RandomState(0).randn(count).astype(np.float32)


def few(count: int = COUNT, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers below a tenth of the count."""
    return np.random.RandomState(seed).randint(0, max(count // 10, 1), count).astype(np.int64)


# ---- texts

for label, texts in (("10 bytes", short), ("100 bytes", long)):
    for name, function in (
        ("string_length", tf.strings.length),
        ("substr", lambda x: tf.strings.substr(x, 1, 4)),
        ("string_upper", tf.strings.upper),
        ("string_strip", tf.strings.strip),
        ("string_join", lambda x: tf.strings.join([x, x], "-")),
        ("reduce_join", lambda x: tf.strings.reduce_join(tf.reshape(x, [-1, 10]), 1, separator=" ")),
        ("regex_replace", lambda x: tf.strings.regex_replace(x, "a+", "<>")),
        ("regex_replace with groups", lambda x: tf.strings.regex_replace(x, r"(\w+) (\w+)", r"\2 \1")),
        ("regex_full_match", lambda x: tf.strings.regex_full_match(x, "[a-m]+ .*")),
        ("string_to_hash_bucket", lambda x: tf.string_to_hash_bucket(x, 1000)),
        ("string_to_hash_bucket_fast", lambda x: tf.strings.to_hash_bucket_fast(x, 1000)),
        ("string_to_hash_bucket_strong", lambda x: tf.strings.to_hash_bucket_strong(x, 1000, [1, 2])),
        ("string_split", lambda x: tf.string_split(x, " ")),
        ("encode_base64", tf.encode_base64),
        ("decode_base64", tf.decode_base64),
    ):
        make = texts
        if name == "decode_base64":
            make = lambda make=texts: [  # noqa: E731
                __import__("base64").urlsafe_b64encode(text).rstrip(b"=") for text in make()
            ]
            make = lambda make=make: np.array(make() + [b""], object)[:-1]  # noqa: E731
        case(f"{name}, {label}", lambda make=make: {"x": make()}, function)

case(
    "substr, each its own",
    lambda: {"x": short(), "at": few(10 * COUNT)[:COUNT] % 5, "size": few(COUNT, 1) % 5},
    lambda x, at, size: tf.strings.substr(x, at, size),
)
case(
    "string_length of characters", lambda: {"x": accented()}, lambda x: tf.strings.length(x, unit="UTF8_CHAR")
)
case(
    "substr of characters", lambda: {"x": accented()}, lambda x: tf.strings.substr(x, 1, 3, unit="UTF8_CHAR")
)
case("string_upper of UTF-8", lambda: {"x": accented()}, lambda x: tf.strings.upper(x, "utf-8"))
case(
    "string_split by white space", lambda: {"x": short()}, lambda x: tf.raw_ops.StringSplitV2(input=x, sep="")
)
case("string_split by a text", lambda: {"x": short()}, lambda x: tf.raw_ops.StringSplitV2(input=x, sep="a "))
case(
    "unicode_transcode",
    lambda: {"x": accented()},
    lambda x: tf.strings.unicode_transcode(x, "UTF-8", "UTF-16-BE"),
)


def decode(x: Any) -> Any:
    return tf.raw_ops.UnicodeDecode(input=x, input_encoding="UTF-8")


def decode_with_offsets(x: Any) -> Any:
    return tf.raw_ops.UnicodeDecodeWithOffsets(input=x, input_encoding="UTF-8")


def encode(points: Any, splits: Any) -> Any:
    return tf.raw_ops.UnicodeEncode(input_values=points, input_splits=splits, output_encoding="UTF-8")


case("unicode_decode", lambda: {"x": accented()}, decode)
case("unicode_decode_with_offsets", lambda: {"x": accented()}, decode_with_offsets)
case(
    "unicode_encode",
    lambda: {
        "points": np.random.RandomState(0).randint(32, 1000, 8 * COUNT).astype(np.int32),
        "splits": np.arange(COUNT + 1).astype(np.int64) * 8,
    },
    encode,
)
case("as_string of integers", lambda: {"x": numbers()}, tf.strings.as_string)
case("as_string of floats", lambda: {"x": floats()}, tf.strings.as_string)
case("as_string, shortest", lambda: {"x": floats()}, lambda x: tf.strings.as_string(x, shortest=True))
case(
    "string_to_number, integers",
    lambda: {"x": as_objects(numbers())},
    lambda x: tf.strings.to_number(x, tf.int64),
)
case("string_to_number, floats", lambda: {"x": as_objects(floats())}, tf.strings.to_number)
case(
    "string_ngrams",
    lambda: {"x": short(), "splits": np.arange(COUNT // 10 + 1).astype(np.int64) * 10},
    lambda x, splits: tf.raw_ops.StringNGrams(
        data=x,
        data_splits=splits,
        separator=" ",
        ngram_widths=[2, 3],
        left_pad="",
        right_pad="",
        pad_width=0,
        preserve_short_sequences=False,
    ),
)
case(
    "unsorted_segment_join",
    lambda: {"x": short(), "segments": few()},
    lambda x, segments: tf.strings.unsorted_segment_join(x, segments, max(COUNT // 10, 1), " "),
)
case("gather of texts", lambda: {"x": short(), "at": few()}, lambda x, at: tf.gather(x, at))
case("concat of texts", lambda: {"x": short()}, lambda x: tf.concat([x, x], 0))
case("equal texts", lambda: {"x": short(), "y": short(seed=1)}, lambda x, y: tf.equal(x, y))

# ---- distinct ones and places

case("unique texts", lambda: {"x": short()}, tf.unique)
case("unique texts, all differ", lambda: {"x": keys()}, tf.unique)
case("unique numbers", lambda: {"x": few()}, tf.unique)
case("unique_with_counts", lambda: {"x": few()}, tf.unique_with_counts)
case(
    "unique along an axis",
    lambda: {"x": few().reshape(-1, 2) % 100},
    lambda x: tf.raw_ops.UniqueV2(x=x, axis=np.array([0], np.int64)),
)
case("setdiff1d of numbers", lambda: {"x": few(), "y": few(seed=1)[: COUNT // 10]}, tf.setdiff1d)
case("setdiff1d of texts", lambda: {"x": keys(), "y": keys(seed=1)[: COUNT // 10]}, tf.setdiff1d)
case("where", lambda: {"x": few().reshape(-1, 10) % 2 == 0}, tf.where)

# ---- tables


def static(keys_now: Any, x: Any, values: Any) -> tuple[Any, list[Any]]:
    initializer = tf.lookup.KeyValueTensorInitializer(keys_now, values)
    table = tf.lookup.StaticHashTable(initializer, -1)
    return table.lookup(x), [table.initializer]


def with_buckets(keys_now: Any, x: Any, values: Any) -> tuple[Any, list[Any]]:
    initializer = tf.lookup.KeyValueTensorInitializer(keys_now, values)
    table = tf.lookup.StaticVocabularyTable(initializer, 10)
    return table.lookup(x), [table.initializer]


def mutable(keys_now: Any, values: Any) -> Any:
    return tf.lookup.experimental.MutableHashTable(keys_now.dtype, values.dtype, -1)


def dense(keys_now: Any, values: Any) -> Any:
    is_text = keys_now.dtype == tf.string
    return tf.lookup.experimental.DenseHashTable(
        keys_now.dtype, values.dtype, -1, *(("", "~") if is_text else (-1, -2)), initial_num_buckets=2**18
    )


def found(make: Any) -> Build:
    def build(keys_now: Any, x: Any, values: Any) -> tuple[Any, list[Any]]:
        table = make(keys_now, values)
        return table.lookup(x), [table.insert(keys_now, values)]

    return build


def inserted(make: Any) -> Build:
    def build(keys_now: Any, values: Any) -> tuple[Any, list[Any]]:
        table = make(keys_now, values)
        return table.insert(keys_now, values), []

    return build


def inserted_and_removed(make: Any) -> Build:
    def build(keys_now: Any, values: Any) -> tuple[Any, list[Any]]:
        table = make(keys_now, values)
        with tf.control_dependencies([table.insert(keys_now, values)]):
            return table.remove(keys_now), []

    return build


def exported(make: Any) -> Build:
    def build(keys_now: Any, values: Any) -> tuple[Any, list[Any]]:
        table = make(keys_now, values)
        return table.export(), [table.insert(keys_now, values)]

    return build


for label, make in (("texts", keys), ("numbers", numbers)):
    for name, build in (
        ("HashTable lookup", static),
        ("vocabulary lookup", with_buckets),
        ("MutableHashTable lookup", found(mutable)),
        ("MutableDenseHashTable lookup", found(dense)),
    ):
        inputs = lambda make=make: {  # noqa: E731
            "keys_now": make(),
            "x": make(seed=1),
            "values": np.arange(COUNT),
        }
        CASES.append((f"{name}, {label}", inputs, build))
    for name, build in (
        ("MutableHashTable insert", inserted(mutable)),
        ("MutableDenseHashTable insert", inserted(dense)),
        ("MutableHashTable insert and remove", inserted_and_removed(mutable)),
        ("MutableHashTable export", exported(mutable)),
    ):
        inputs = lambda make=make: {"keys_now": make(), "values": np.arange(COUNT)}  # noqa: E731
        CASES.append((f"{name}, {label}", inputs, build))

# ---- sparse tensors

ROWS, COLUMNS = max(COUNT // 10, 1), 1000


def sparse(shuffled: bool = False, texts: bool = False, seed: int = 0) -> Inputs:
    """The indices, in order or not, and the values of a matrix with ten elements a row."""
    random = np.random.RandomState(seed)
    places = random.choice(ROWS * COLUMNS, COUNT, replace=False)
    places = places if shuffled else np.sort(places)
    indices = np.stack((places // COLUMNS, places % COLUMNS), 1).astype(np.int64)
    return {"at": indices, "values": short(seed=seed) if texts else floats()}


def matrix(at: Any, values: Any) -> Any:
    return tf.SparseTensor(at, values, [ROWS, COLUMNS])


def whole(tensor: Any) -> Any:
    return tensor.indices, tensor.values


case("sparse_reorder", lambda: sparse(True), lambda at, values: whole(tf.sparse.reorder(matrix(at, values))))
case(
    "sparse_reorder of texts",
    lambda: sparse(True, True),
    lambda at, values: whole(tf.sparse.reorder(matrix(at, values))),
)
case(
    "sparse_fill_empty_rows",
    sparse,
    lambda at, values: whole(
        tf.sparse.fill_empty_rows(tf.SparseTensor(at, values, [2 * ROWS, COLUMNS]), 0.0)[0]
    ),
)
case(
    "sparse_fill_empty_rows of texts",
    lambda: sparse(texts=True),
    lambda at, values: whole(
        tf.sparse.fill_empty_rows(tf.SparseTensor(at, values, [2 * ROWS, COLUMNS]), "")[0]
    ),
)
case(
    "sparse_concat",
    sparse,
    lambda at, values: whole(tf.sparse.concat(1, [matrix(at, values), matrix(at, values)])),
)
case(
    "sparse_slice",
    sparse,
    lambda at, values: whole(tf.sparse.slice(matrix(at, values), [10, 10], [ROWS // 2, COLUMNS // 2])),
)
case(
    "sparse_split",
    sparse,
    lambda at, values: whole(tf.sparse.split(sp_input=matrix(at, values), num_split=2, axis=1)[0]),
)
case(
    "sparse_retain",
    lambda: sparse() | {"kept": few() % 2 == 0},
    lambda at, values, kept: whole(tf.sparse.retain(matrix(at, values), kept)),
)
case(
    "sparse_to_dense of texts",
    lambda: sparse(texts=True),
    lambda at, values: tf.sparse.to_dense(
        tf.SparseTensor(at // [1, 100], values, [ROWS, 10]), "", validate_indices=False
    ),
)
case(
    "serialize_many_sparse",
    sparse,
    lambda at, values: tf.serialize_many_sparse(matrix(at, values)),
)


def cross(hashed: bool) -> Build:
    def build(x: Any, y: Any) -> Any:
        inputs = [tf.reshape(x, [-1, 1]), tf.reshape(y, [-1, 1])]
        crossed = tf.sparse.cross_hashed(inputs, 1000) if hashed else tf.sparse.cross(inputs)
        return whole(crossed)

    return build


for label, hashed in (("sparse_cross", False), ("sparse_cross_hashed", True)):
    case(f"{label} of texts", lambda: {"x": short(), "y": short(seed=1)}, cross(hashed))
    case(f"{label} of numbers", lambda: {"x": few(), "y": few(seed=1)}, cross(hashed))

for label, make in (("texts", lambda seed: short(seed=seed)), ("numbers", lambda seed: few(seed=seed))):
    sets = lambda make=make: {"x": make(0).reshape(-1, 100), "y": make(1).reshape(-1, 100)}  # noqa: E731
    for name in ("union", "intersection", "difference"):
        function = getattr(tf.sets, name, None) or getattr(tf.sets, f"set_{name}")
        case(f"set {name} of {label}", sets, lambda x, y, function=function: whole(function(x, y)))
    case(
        f"set size of {label}",
        lambda make=make: {"x": make(0).reshape(-1, 100)},
        lambda x: (
            tf.sets.size(tf.sparse.from_dense(x)) if x.dtype != tf.string else tf.sets.size(as_sparse(x))
        ),
    )


def as_sparse(x: Any) -> Any:
    rows, columns = np.indices((COUNT // 100, 100)).reshape(2, -1)
    return tf.SparseTensor(
        np.stack((rows, columns), 1).astype(np.int64), tf.reshape(x, [-1]), [COUNT // 100, 100]
    )


def distance(at: Any, values: Any, other: Any) -> Any:
    first, second = (tf.SparseTensor(at, each, [COUNT // 10, 10]) for each in (values, other))
    return tf.edit_distance(first, second)


def sequences(seed: int) -> np.ndarray[Any, Any]:
    return np.stack([each.reshape(-1) for each in np.indices((COUNT // 10, 10))], 1).astype(np.int64)


case(
    "edit_distance of numbers",
    lambda: {"at": sequences(0), "values": few() % 10, "other": few(seed=1) % 10},
    distance,
)
case(
    "edit_distance of texts",
    lambda: {"at": sequences(0), "values": as_objects(few() % 10), "other": as_objects(few(seed=1) % 10)},
    distance,
)

# ---- boxes


def boxes(count: int = COUNT) -> Inputs:
    """Boxes in a square of the side of 1000, and scores."""
    random = np.random.RandomState(0)
    corners = random.uniform(0, 1000, (count, 2))
    sizes = random.uniform(5, 50, (count, 2))
    scores = random.permutation(count) / count
    return {
        "boxes": np.hstack((corners, corners + sizes)).astype(np.float32),
        "scores": scores.astype(np.float32),
    }


def overlaps() -> Inputs:
    """A matrix of overlaps with as many elements."""
    size = int(COUNT**0.5)
    return {
        "x": np.random.RandomState(0).rand(size, size).astype(np.float32),
        "scores": boxes(size)["scores"],
    }


for limit in (100, 1000):
    case(
        f"non_max_suppression, at most {limit}",
        boxes,
        lambda boxes, scores, limit=limit: tf.image.non_max_suppression(boxes, scores, limit),
    )
case(
    "non_max_suppression of 2,000 boxes in a narrow place",
    lambda: {name: value[:2000] / (20 if name == "boxes" else 1) for name, value in boxes().items()},
    lambda boxes, scores: tf.image.non_max_suppression(boxes, scores, 200),
)
case(
    "non_max_suppression, softly",
    lambda: boxes(max(COUNT // 10, 1)),
    lambda boxes, scores: tf.image.non_max_suppression_with_scores(boxes, scores, 100, soft_nms_sigma=0.5)[0],
)
case(
    "non_max_suppression_overlaps",
    overlaps,
    lambda x, scores: tf.image.non_max_suppression_overlaps(x, scores, 100, 0.9),
)
