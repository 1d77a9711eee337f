"""Cases of sparse tensors as strings."""

import numpy as np

from op_cases import case, normal, strings

INVALID = "InvalidArgumentError"
TYPES = "float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 half bool complex64 complex128"


def rows(*values: object) -> np.ndarray:
    """Index rows, or sizes, in int64."""
    return np.array(values, np.int64)


def none(rank: int) -> np.ndarray:
    """No index rows."""
    return np.zeros((0, rank), np.int64)


def wrong(op: str, label: str, *arguments: object, error: str = INVALID, **attributes: object) -> list:
    """A case whose arguments do not fit."""
    return case(op, *arguments, label=label, error=error, **attributes)


def sized(tag: int, data: bytes) -> bytes:
    """A field of a message: its tag, length and bytes."""
    return bytes((tag, len(data))) + data


def proto(kind: int, dims: tuple, field: bytes) -> bytes:
    """A TensorProto of the type with this number."""
    shape = b"".join(sized(0x12, b"\x08" + bytes((n,)) if n else b"") for n in dims)
    return bytes((0x08, kind)) + sized(0x12, shape) + field


def ints(*values: object) -> bytes:
    """The TensorProto of an int64 array."""
    array = np.array(values, np.int64)
    return proto(9, array.shape, sized(0x22, array.tobytes()) if array.size else b"")


def floats(*values: float) -> bytes:
    """The TensorProto of a float32 vector."""
    return proto(1, (len(values),), sized(0x22, np.float32(values).tobytes()) if values else b"")


def texts(*values: bytes) -> bytes:
    """The TensorProto of a vector of short strings."""
    return proto(7, (len(values),), sized(0x22, bytes(map(len, values)) + b"".join(values)))


P = rows([0, 0], [0, 2], [2, 1])
SIZES = rows(3, 3)
FIRST = [ints([0, 0], [1, 2]), floats(1, 2), ints(3, 4)]
OTHER = [ints([2, 3]), floats(5), ints(5, 2)]
EMPTY = [proto(9, (0, 2), b""), floats(), ints(1, 1)]
WORDS = [ints([0, 1], [1, 0]), texts(b"ab", b""), ints(2, 2)]
LISTED = [ints([0, 0], [1, 2]), proto(1, (2,), sized(0x2A, np.float32([3, 4]).tobytes())), ints(3, 4)]
REPEATED = [ints([0, 0], [1, 2]), proto(1, (2,), sized(0x2A, np.float32([3]).tobytes())), ints(3, 4)]


def many(*tensors: list, label: str, dtype: str = "float32", **options: object) -> list:
    """A case of both ops that read a matrix of strings."""
    return [
        case("DeserializeManySparse", strings(list(tensors)), dtype=dtype, label=label, **options),
        case("DeserializeSparse", strings(list(tensors)), dtype=dtype, label=label, **options),
    ]


def corrupt(label: str, *three: bytes) -> list:
    """A case whose strings hold no sparse tensor."""
    return many(list(three), label=label, error=INVALID)


CASES = [
    case("SerializeSparse", P, normal(3), SIZES, dtypes=TYPES),
    case("SerializeSparse", P, strings(["a", "bb", ""]), SIZES),
    case("SerializeSparse", P, strings(["a" * 200, "bb", ""]), SIZES, label="long"),
    case("SerializeSparse", none(2), normal(0), rows(5, 2)),
    case("SerializeSparse", rows([3]), normal(1), rows(5)),
    case("SerializeSparse", P[::-1].copy(), normal(3), SIZES, label="unordered"),
    wrong("SerializeSparse", "vector", rows(1), normal(3), SIZES, error="ValueError"),
    case("SerializeManySparse", P, normal(3), SIZES, dtypes=TYPES),
    case("SerializeManySparse", P, strings(["a", "bb", ""]), SIZES),
    case("SerializeManySparse", none(2), normal(0), rows(3, 2)),
    case("SerializeManySparse", none(2), normal(0), rows(0, 2)),
    case("SerializeManySparse", rows([0, 0, 1], [1, 1, 1]), normal(2), rows(2, 3, 4)),
    wrong("SerializeManySparse", "count", P, normal(2), SIZES),
    wrong("SerializeManySparse", "out of order", P[::-1].copy(), normal(3), SIZES),
    wrong("SerializeManySparse", "outside", rows([0, 0], [5, 2]), normal(2), SIZES),
    wrong("SerializeManySparse", "vector", rows([0]), normal(1), rows(2)),
    wrong(
        "SerializeManySparse",
        "too large",
        rows([0, 0]),
        normal(1),
        rows(2**60, 3),
        error="ResourceExhaustedError",
    ),
    many(FIRST, label="one"),
    many(FIRST, OTHER, label="two"),
    many(EMPTY, FIRST, EMPTY, label="with empty ones"),
    many(WORDS, label="words", dtype="string"),
    many(LISTED, label="listed"),
    many(REPEATED, label="repeated"),
    many(FIRST, label="other type", dtype="int32", error=INVALID),
    many(FIRST, [ints([0]), floats(1), ints(3)], label="other rank", error=INVALID),
    case("DeserializeSparse", strings(FIRST), dtype="float32", label="vector"),
    case("DeserializeSparse", strings([[FIRST, OTHER], [EMPTY, FIRST]]), dtype="float32", label="cube"),
    wrong("DeserializeManySparse", "vector", strings(FIRST), dtype="float32", error="ValueError"),
    wrong("DeserializeManySparse", "two", strings([FIRST[:2]]), dtype="float32", error="ValueError"),
    wrong("DeserializeSparse", "two", strings(FIRST[:2]), dtype="float32", error="ValueError"),
    wrong("DeserializeSparse", "scalar", strings(b""), dtype="float32", error="ValueError"),
    [
        wrong(op, "none", np.zeros((0, 3), object), dtype="float32")
        for op in ("DeserializeManySparse", "DeserializeSparse")
    ],
    corrupt("garbage", b"x", b"y", b"z"),
    corrupt("empty", b"", b"", b""),
    corrupt("cut", FIRST[0][:-1], *FIRST[1:]),
    corrupt("too much", FIRST[0] + b"\x00", *FIRST[1:]),
    corrupt("indices a vector", ints(0, 1), *FIRST[1:]),
    corrupt("indices floats", floats(0, 1), *FIRST[1:]),
    corrupt("values a matrix", FIRST[0], ints([1, 2]), FIRST[2]),
    corrupt("shape a matrix", *FIRST[:2], ints([3, 4])),
    corrupt("too few values", FIRST[0], floats(1), FIRST[2]),
    corrupt("too few sizes", *FIRST[:2], ints(3)),
    corrupt("short content", proto(9, (2, 2), sized(0x22, b"\0" * 24)), *FIRST[1:]),
]
