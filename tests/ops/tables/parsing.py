"""Cases of ops that parse Examples, CSV, JSON, bytes and serialised tensors.

Messages are written here byte by byte, so that the oracle's interpreter makes the same.
"""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np

from op_cases import case, listed, literal, normal, strings

INVALID = "InvalidArgumentError"


def part(number: int, data: bytes) -> bytes:
    """A field of a message that holds bytes."""
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    number &= 2**64 - 1
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def feature(*values: object) -> bytes:
    """A Feature of bytes, floats or integers; of no kind without values."""
    if not values:
        return b""
    if isinstance(values[0], bytes):
        return part(1, b"".join(part(1, value) for value in values))
    if isinstance(values[0], float):
        return part(2, part(1, struct.pack(f"<{len(values)}f", *values)))
    return part(3, part(1, b"".join(map(varint, values))))


def features(**values: object) -> bytes:
    """A Features message; values are a tuple each, or a Feature's bytes."""
    entries = {key: feature(*value) if isinstance(value, tuple) else value for key, value in values.items()}
    return b"".join(part(1, part(1, key.encode()) + part(2, value)) for key, value in entries.items())


def example(**values: object) -> bytes:
    """A serialised Example."""
    return part(1, features(**values))


def sequence(lists: dict[str, list[tuple]], **values: object) -> bytes:
    """A serialised SequenceExample."""
    entries = (
        part(1, part(1, key.encode()) + part(2, b"".join(part(1, feature(*each)) for each in steps)))
        for key, steps in lists.items()
    )
    return part(1, features(**values)) + part(2, b"".join(entries))


REGULAR = [example(x=(1.0 * i, 2.0), y=(i, -i, 2**40 + i), z=(b"ab", b"%d" % i)) for i in range(1, 7)]
IRREGULAR = [
    example(x=(1.0, 2.0), y=(3,), z=(b"q",)),
    example(x=(3.0, 4.0), z=(b"long", b"", b"\xff")),
    example(x=(5.0, 6.0), y=(-1, 300, 2**63 - 1, -(2**63))),
    example(y=(), x=(7.0, 8.0)),
    part(1, features(x=(0.5, 0.5))) + part(1, features(y=(9,))),  # in two parts
    example(x=b"\x12\x0a\x0d\0\0\x80?\x0d\0\0\0@", y=b"\x1a\x04\x08\x05\x08\x06"),  # not packed
]
SIZED = [example(x=(1.0, float(i)), y=(10 ** (i % 4),), z=(b"k",)) for i in range(12)]
BATCHES = {"regular": REGULAR, "irregular": IRREGULAR, "two sizes": SIZED, "one": REGULAR[:1], "none": []}
NO_FLOAT = np.zeros(0, np.float32)
NO_TEXT = literal(np.zeros(0, object), "string")


def batch(label: str, messages: list, shape: object = (2,), default: object = NO_FLOAT,
          names: object = NO_TEXT, **options: object) -> list:  # fmt: skip
    """A case of ParseExample: y is sparse, x and z are dense."""
    texts = literal(np.array(messages, object), "string")
    keys = (listed(strings("y")), listed(strings("x"), strings("z")))
    return case(
        "ParseExample", texts, names, *keys, listed(default, strings("?")), label=label,
        sparse_types=["int64"], dense_shapes=[list(shape), [None]], Nsparse=1, Ndense=2, **options,
    )  # fmt: skip


def asked(label: str, messages: object, **options: object) -> list:
    """A case of ParseExampleV2: y is sparse, x dense, w and z are ragged."""
    keys = (strings(["y"]), strings(["x"]), strings(["w", "z"]))
    return case(
        "ParseExampleV2", literal(np.array(messages, object), "string"), NO_TEXT, *keys, listed(NO_FLOAT),
        label=label, num_sparse=1, sparse_types=["int64"], dense_shapes=[[2]],
        ragged_value_types=["int64", "string"], ragged_split_types=["int64", "int32"], **options,
    )  # fmt: skip


def single(
    label: str, message: bytes, shape: object = (2,), default: object = NO_FLOAT, **options: object
) -> list:
    """A case of ParseSingleExample: y is sparse, x and z are dense."""
    return case(
        "ParseSingleExample", strings(message), listed(default, strings("?")), label=label, num_sparse=1,
        dense_keys=["x", "z"], sparse_types=["int64"], dense_shapes=[list(shape), [None]],
        **{"sparse_keys": ["y"], **options},
    )  # fmt: skip


WRONG = {
    "type": [REGULAR[0], example(x=(1, 2))],
    "count": [REGULAR[0], example(x=(1.0, 2.0, 3.0))],
    "empty": [REGULAR[0], example(x=b"\x12\0")],
    "missing": [REGULAR[0], example(y=(1,))],
    "all of another type": [example(x=(b"a",))] * 6,
    "sparse type": [example(x=(1.0, 2.0), y=(b"a",))] * 6,
}

# ---- sequences

STEPS = sequence({"l": [(1.0, 2.0), (3.0, 4.0)], "v": [(b"a",), (), (b"b", b"c")]}, c=(1, 2), x=(5.0,))
SHORT = sequence({"l": [(9.0, 9.0)], "v": []}, c=(3, 4))
SEQUENCE = {
    "Ncontext_sparse": 1, "Ncontext_dense": 1, "Nfeature_list_sparse": 1, "Nfeature_list_dense": 2,
    "context_sparse_types": ["float32"], "context_dense_shapes": [[2]],
    "feature_list_dense_types": ["float32", "int64"], "feature_list_sparse_types": ["string"],
    "feature_list_dense_shapes": [[2], []],
}  # fmt: skip


def one_sequence(label: str, message: bytes, name: str = "", **options: object) -> list:
    """A case of ParseSingleSequenceExample."""
    keys = (
        listed(strings("x")),
        listed(strings("c")),
        listed(strings("v")),
        listed(strings("l"), strings("m")),
    )
    return case(
        "ParseSingleSequenceExample", strings(message), strings(["m"]), *keys,
        listed(np.zeros(0, np.int64)), strings(name), label=label, **SEQUENCE, **options,
    )  # fmt: skip


def sequences(label: str, messages: object, **options: object) -> list:
    """A case of ParseSequenceExample."""
    return case(
        "ParseSequenceExample", literal(np.array(messages, object), "string"), NO_TEXT,
        listed(np.zeros(0, np.int64)), label=label, context_sparse_keys=["x"],
        context_dense_keys=["c"], feature_list_sparse_keys=["v"], feature_list_dense_keys=["l", "m"],
        feature_list_dense_missing_assumed_empty=["m"], **{**SEQUENCE, **options},
    )  # fmt: skip


RAGGED = [
    sequence({"l": [(1.0, 2.0)], "v": [(b"a",), ()], "r": [(1, 2), (), (3,)]}, c=(1, 2), x=(5.0,), g=(7.0,)),
    sequence({"l": [(9.0, 9.0), (8.0, 8.0)], "v": [], "r": [(4,)]}, c=(3, 4)),
    sequence({"l": []}, c=(5, 6), g=(1.0, 2.0, 3.0)),
]


def ragged_sequences(
    label: str, messages: object, assumed: object = (False, True), **options: object
) -> list:
    """A case of ParseSequenceExampleV2: x and v are sparse, c, l and m dense, g and r ragged."""
    keys = [strings([key]) for key in "xcgv"] + [strings(["l", "m"]), strings(["r"])]
    return case(
        "ParseSequenceExampleV2", literal(np.array(messages, object), "string"), NO_TEXT, *keys,
        np.array(assumed, np.bool_), listed(np.zeros(0, np.int64)), label=label,
        context_ragged_value_types=["float32"], context_ragged_split_types=["int32"],
        feature_list_ragged_value_types=["int64"], feature_list_ragged_split_types=["int64"],
        **{key: value for key, value in {**SEQUENCE, **options}.items() if key != "Ncontext_dense"},
    )  # fmt: skip


# ---- CSV

LINES = ['1,2.5,"a,b"', '-7,1e3,x""', ",,", '2147483647, 3 ,"say ""hi"""', "0,nan,\n", '5,6,"two\nlines"']
DEFAULTS = listed(literal(4, "int32"), literal(0.5, "float64"), strings("none"))
WRONG_LINES = {
    "quote inside": '1,2,a"b',
    "text after quotes": '1,2,"a"b',
    "open quotes": '1,2,"a',
    "line end": "1,2,a\n",
    "few": "1,2",
    "many": "1,2,3,4",
    "no number": "a,2,3",
    "large": "99999999999,2,3",
    "nothing": "",
}


def lines(label: str, records: object, defaults: object = DEFAULTS, **options: object) -> list:
    """A case of DecodeCSV."""
    return case("DecodeCSV", strings(records), defaults, label=label, **options)


# ---- bytes, JSON and tensors

BYTES = strings([[bytes(range(16))], [bytes(range(240, 256))]])
COUNTED = strings([bytes(range(5)), b"", bytes(range(20))])
WIDE = "float16 float32 float64 int32 uint16 uint8 int16 int8 int64 bfloat16 complex64 bool"
TEXT = b"a text that repeats a text that repeats" * 3
PACKER = zlib.compressobj(9, zlib.DEFLATED, 31)
GZIP = PACKER.compress(TEXT) + PACKER.flush()
JSON = [
    {"features": {"feature": {"a": {"bytesList": {"value": ["YWI="]}}}}},
    {"features": {"feature": {"a": {"bytes_list": {}}}}},
    {},
]
TENSORS = {
    "float32": b"\x08\x01\x12\x04\x12\x02\x08\x02" + part(4, struct.pack("<2f", 1.5, -2)),
    "int32": b"\x08\x03\x12\x08\x12\x02\x08\x02\x12\x02\x08\x03" + part(7, b"\x07"),
    "string": b"\x08\x07\x12\x04\x12\x02\x08\x02" + part(8, b"a") + part(8, b"bc"),
}

CASES = [
    [batch(label, messages) for label, messages in BATCHES.items() if label != "irregular"],
    batch("irregular", IRREGULAR),
    batch("named", REGULAR, names=strings([f"n{i}" for i in range(6)])),
    batch("default", [*REGULAR, example(), b""], default=np.float32([8, 9])),
    batch("sequence", [*REGULAR, *IRREGULAR], shape=(None, 1), default=np.float32(-1)),
    batch("scalar", [example(x=(1.0,))] * 5, shape=()),
    [batch(label, messages, error=INVALID) for label, messages in WRONG.items()],
    batch("names", REGULAR, names=strings(["n"]), error=INVALID),
    batch("default shape", REGULAR, default=np.float32([1, 2, 3]), error=INVALID),
    batch("stride", REGULAR, shape=(None, 3), default=np.float32(0), error=INVALID),
    [asked(label, messages) for label, messages in BATCHES.items()],
    asked("scalar", REGULAR[0]),
    [asked(label, messages, error=INVALID) for label, messages in WRONG.items()],
    single("usual", REGULAR[0]),
    single("keys", REGULAR[0], sparse_keys=["y", "x"], error="ValueError"),
    single("little", example(x=(1.0, 2.0))),
    single("default", b"", default=np.float32([8, 9])),
    single("sequence", REGULAR[0], shape=(None, 2), default=np.float32(0)),
    [single(label, messages[-1], error=INVALID) for label, messages in WRONG.items()],
    one_sequence("usual", STEPS),
    one_sequence("short", SHORT, name="n"),
    one_sequence("no list", sequence({}, c=(1, 2)), error=INVALID),
    one_sequence("no context", sequence({"l": []}), error=INVALID),
    one_sequence("list type", sequence({"l": [(1,)]}, c=(1, 2)), error=INVALID),
    one_sequence("step size", sequence({"l": [(1.0,)]}, c=(1, 2)), error=INVALID),
    sequences("usual", [STEPS, SHORT, STEPS]),
    sequences("no list", [sequence({}, c=(1, 2))], error=INVALID),
    sequences("step size", [STEPS, sequence({"l": [(1.0,)]}, c=(1, 2))], error=INVALID),
    [
        [f("counts", [STEPS], **{name: count}, error="ValueError") for f in (sequences, ragged_sequences)]
        for name in ("Ncontext_sparse", "Nfeature_list_sparse", "Nfeature_list_dense")
        for count in (0, 3)
    ],
    ragged_sequences("usual", RAGGED),
    ragged_sequences("one", RAGGED[1:2]),
    ragged_sequences("no list", RAGGED, assumed=(False, False), error=INVALID),
    ragged_sequences("list type", [sequence({"l": [(1.0, 2.0)], "r": [(b"a",)]}, c=(1, 2))], error=INVALID),
    ragged_sequences("not a message", [b"\xff"], error=INVALID),
    lines("lines", [LINES[0], LINES[2], LINES[3], LINES[5]]),
    lines("table", [[LINES[0]], [LINES[2]]]),
    lines("none", np.zeros(0, object)),
    lines("tabs", ["1\t2\tx,y"], field_delim="\t"),
    lines("plain", ['1,2,"a'], use_quote_delim=False),
    lines("missing", ["NA,NA,NA"], na_value="NA"),
    lines("chosen", ["0,1,2,3,4,5", "6,7,8,9,10,11"], select_cols=[1, 3, 4]),
    lines("required", ["1,2,3"], listed(np.zeros(0, np.int64), np.zeros(0, np.float32), strings(""))),
    lines("required", ["1,,3"], listed(literal(1), np.zeros(0, np.float32), strings("")), error=INVALID),
    [lines(label, [record], error=INVALID) for label, record in WRONG_LINES.items()],
    lines("delimiter", ["1,2,3"], field_delim="ab", error=INVALID),
    lines("chosen few", ["0,1"], select_cols=[0, 1, 5], error=INVALID),
    [
        case("DecodeRaw", BYTES, out_type=dtype, little_endian=little, label=f"{dtype} {little}")
        for dtype in WIDE.split()
        for little in (True, False)
    ],
    case("DecodeRaw", strings(np.zeros((0, 2), object)), out_type="float32"),
    case("DecodeRaw", strings(b""), out_type="float32", label="nothing"),
    case("DecodeRaw", strings([b"abcd", b"ab"]), out_type="uint8", error=INVALID),
    case("DecodeRaw", strings(b"abc"), out_type="int16", error=INVALID),
    [
        case("DecodePaddedRaw", COUNTED, 16, out_type=dtype, little_endian=little, label=f"{dtype} {little}")
        for dtype in ("uint8", "int16", "float32", "float64")
        for little in (True, False)
    ],
    case("DecodePaddedRaw", COUNTED, 6, out_type="float32", error=INVALID),
    case("DecodePaddedRaw", COUNTED, 0, out_type="uint8", error=INVALID),
    case("DecodeCompressed", strings([TEXT, b""])),
    case("DecodeCompressed", strings([zlib.compress(TEXT), zlib.compress(b"")]), compression_type="ZLIB"),
    case("DecodeCompressed", strings(GZIP), compression_type="GZIP"),
    case("DecodeCompressed", strings(TEXT), compression_type="BZIP", error=INVALID),
    case("DecodeJSONExample", strings([json.dumps(each) for each in JSON])),
    case("DecodeJSONExample", strings([["{}"]])),
    case("DecodeJSONExample", strings("{"), error=INVALID),
    case("DecodeJSONExample", strings('{"feature": 1}'), error=INVALID),
    [case("ParseTensor", strings(data), out_type=dtype, label=dtype) for dtype, data in TENSORS.items()],
    case("ParseTensor", strings(TENSORS["int32"]), out_type="float32", error=INVALID),
    case("ParseTensor", strings(b"\xff\xff"), out_type="float32", error=INVALID),
    case("ParseTensor", strings([b""]), out_type="float32", error=INVALID),
    case("SerializeTensor", normal(2, 3), dtypes="float32 float64 float16 int32 uint8 int64 bfloat16"),
    case("SerializeTensor", normal(), dtypes="float32 int64"),
    case("SerializeTensor", strings([[b"a"], [b"bc"]])),
    case("SerializeTensor", normal(0, 3)),
]  # fmt: skip
