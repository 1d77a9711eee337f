"""Cases of the array family: shapes, joining, cutting, indexing, padding, reordering, space and batch moves.

`CASES` is read by the op table test and by the golden generator; inputs stay below some hundred elements.
"""

import numpy as np

from op_cases import bools, case, ints, literal, normal, strings, variable

NUMERIC = "float32 float64 half bfloat16 int32 int64 uint8 int16 complex64"
FLOATS = "float32 float64"
INVALID = "InvalidArgumentError"


def i32(value: object) -> np.ndarray:
    """An int32 literal, the default type of shapes and axes."""
    return np.array(value, np.int32)


def i64(value: object) -> np.ndarray:
    """An int64 literal."""
    return np.array(value, np.int64)


def identities() -> list:
    """Ops that hand their input on, and the questions about a shape."""
    words = strings([b"a", b"", b"\xff\x00z"])
    return [
        case("Identity", normal(2, 3), dtypes=NUMERIC),
        case("Identity", normal()),
        case("Identity", normal(0, 3)),
        case("Identity", words),
        case("Identity", bools((4,))),
        case("IdentityN", [normal(2, 2), normal(), i32([1, 2])]),
        case("Snapshot", normal(2, 3), gradient=False),
        case("StopGradient", normal(2, 3), dtypes=FLOATS),
        case("StopGradient", words),
        case("PreventGradient", normal(2, 3), message="no", gradient=False),
        case("PlaceholderWithDefault", normal(2, 3), shape=[2, 3], label="full"),
        case("PlaceholderWithDefault", normal(2, 3), shape=[None, 3], label="partial"),
        case("PlaceholderWithDefault", normal(2, 3), shape=[2, 4], error="ValueError", label="mismatch"),
        case("CheckNumerics", normal(2, 3), message="bad", dtypes="float32 float64 half"),
        case("CheckNumerics", np.float32([1, np.nan]), message="nan", label="nan", error=INVALID),
        case("CheckNumerics", np.float64([1, -np.inf]), message="inf", label="inf", error=INVALID),
        case("EnsureShape", normal(2, 3), shape=[None, 3], label="partial"),
        case("EnsureShape", normal(2, 3), shape=[3, 3], label="mismatch", error=INVALID),
        case("ZerosLike", normal(2, 3), dtypes=NUMERIC),
        case("ZerosLike", strings([b"a", b"b"])),
        case("ZerosLike", bools((3,))),
        case("OnesLike", normal(2, 3), dtypes=NUMERIC),
        case("OnesLike", bools((3,))),
        case("OnesLike", normal(0, 2)),
    ]


def shape_questions() -> list:
    """Shape, ShapeN, Size, Rank and the arithmetic of shapes."""
    cases = []
    for spec in (normal(), normal(3), normal(2, 0, 4), strings([b"x", b"y"])):
        cases += [
            case("Shape", spec),
            case("Shape", spec, out_type="int64"),
            case("Size", spec),
            case("Size", spec, out_type="int64"),
            case("Rank", spec),
        ]
    return cases + [
        case("ShapeN", [normal(2, 3), normal(), normal(0)]),
        case("ShapeN", [normal(2, 3)], out_type="int64"),
        case("BroadcastArgs", i32([2, 3]), i32([3])),
        case("BroadcastArgs", i64([2, 1, 4]), i64([5, 1])),
        case("BroadcastArgs", i32([]), i32([2, 3])),
        case("BroadcastArgs", i32([2, 3]), i32([4]), label="mismatch", error=INVALID),
        case("BroadcastGradientArgs", i32([2, 3]), i32([3])),
        case("BroadcastGradientArgs", i32([2, 1, 4]), i32([5, 1])),
        case("BroadcastGradientArgs", i64([2, 3]), i64([2, 3])),
        case("BroadcastGradientArgs", i32([1]), i32([])),
        case("BroadcastGradientArgs", i32([1, 3]), i32([1, 3]), label="ones"),
        case("BroadcastGradientArgs", i32([2, 3]), i32([4]), label="mismatch", error=INVALID),
        case("InvertPermutation", i32([2, 0, 1])),
        case("InvertPermutation", i32([(i * 7 + 3) % 60 for i in range(60)])),
        case("InvertPermutation", i64([i % 59 for i in range(60)]), label="twice", error=INVALID),
        case("InvertPermutation", i64([0, 3, 1, 2])),
        case("InvertPermutation", i32([])),
        case("InvertPermutation", i32([0, 0, 1]), label="repeated", error=INVALID),
        case("InvertPermutation", i32([0, 3, 1]), label="outside", error=INVALID),
        case("ConcatOffset", np.int32(1), [i32([2, 1, 5]), i32([2, 3, 5]), i32([2, 2, 5])]),
        case("ConcatOffset", np.int32(-1), [i32([2, 1]), i32([2, 3])]),
        case("ConcatOffset", np.int32(1), [i32([2, 1]), i32([3, 3])], label="mismatch", error=INVALID),
    ]


def reshapes() -> list:
    """Other shapes of the same elements."""
    return [
        case("Reshape", normal(2, 6), i32([3, 4]), dtypes=NUMERIC),
        case("Reshape", normal(2, 6), i64([-1])),
        case("Reshape", normal(2, 6), i32([4, -1, 1])),
        case("Reshape", normal(1, 1), i32([]), label="to scalar"),
        case("Reshape", normal(), i32([1, 1])),
        case("Reshape", normal(0, 3), i32([3, 0])),
        case("Reshape", normal(0, 3), i32([-1, 3]), label="empty wildcard"),
        case("Reshape", strings([b"a", b"b"]), i32([2, 1])),
        case("Reshape", normal(2, 3), i32([4, 2]), label="wrong size", error=INVALID),
        case("Reshape", normal(2, 3), i32([-1, 4]), label="no divisor", error=INVALID),
        case("Reshape", normal(2, 3), i32([-2, 3]), label="negative", error=INVALID),
        case("Squeeze", normal(1, 2, 1, 3), dtypes=FLOATS),
        case("Squeeze", normal(1, 2, 1, 3), squeeze_dims=[2]),
        case("Squeeze", normal(1, 2, 1, 3), squeeze_dims=[0, -2]),
        case("Squeeze", normal(1, 1), label="to scalar"),
        case("Squeeze", strings([[b"a", b"b"]])),
        case("Squeeze", normal(1, 2), squeeze_dims=[1], label="not one", error=INVALID),
        case("Squeeze", normal(1, 2), squeeze_dims=[2], label="outside", error=INVALID),
        case("ExpandDims", normal(2, 3), np.int32(0), dtypes=NUMERIC),
        case("ExpandDims", normal(2, 3), np.int32(-1)),
        case("ExpandDims", normal(2, 3), np.int64(1)),
        case("ExpandDims", normal(), np.int32(0)),
        case("ExpandDims", normal(2, 3), i32([1]), label="vector axis"),
        case("ExpandDims", normal(2, 3), np.int32(3), label="outside", error=INVALID),
        case("Transpose", normal(2, 3), i32([1, 0]), dtypes=NUMERIC),
        case("Transpose", normal(2, 3, 4), i64([2, 0, 1])),
        case("Transpose", normal(), i32([])),
        case("Transpose", normal(0, 3), i32([1, 0])),
        case("Transpose", strings([[b"a", b"b"], [b"c", b"d"]]), i32([1, 0])),
        case("Transpose", normal(2, 3), i32([0, 0]), label="repeated", error=INVALID),
        case("Transpose", normal(2, 3), i32([0]), label="short", error=INVALID),
        case("ConjugateTranspose", normal(2, 3), i32([1, 0]), dtypes="complex64 complex128 float32"),
    ]


def joins() -> list:
    """Ops that put several tensors together or take one apart."""
    pair = [strings([b"a"]), strings([b"b", b"c"])]
    cases = [
        case("Concat", np.int32(0), [normal(2, 3), normal(1, 3)], dtypes=NUMERIC),
        case("Concat", np.int32(1), [normal(2, 3), normal(2, 1), normal(2, 0)]),
        case("Concat", np.int32(-1), [normal(2, 3), normal(2, 1)]),
        case("Concat", np.int32(0), pair),
        case("Concat", np.int32(0), [normal(2, 3), normal(1, 2)], label="mismatch", error=INVALID),
        case("ConcatV2", [normal(2, 3), normal(1, 3)], np.int32(0), dtypes=NUMERIC),
        case("ConcatV2", [normal(2, 3), normal(2, 1), normal(2, 0)], np.int32(1)),
        case("ConcatV2", [normal(2, 3), normal(2, 1)], np.int64(-1), gradient=False),
        case("ConcatV2", [bools((2,)), bools((1,))], np.int32(0)),
        case("ConcatV2", pair, np.int32(0)),
        case("ConcatV2", [normal(2, 3), normal(1, 2)], np.int32(0), label="mismatch", error=INVALID),
        case("ConcatV2", [normal(2, 3), normal(2, 3)], np.int32(2), label="outside", error=INVALID),
        case("ParallelConcat", [normal(1, 3), normal(1, 3)], shape=[2, 3], gradient=False),
        case("Split", np.int32(0), normal(4, 3), num_split=2, dtypes=NUMERIC),
        case("Split", np.int32(-1), normal(2, 6), num_split=3),
        case("Split", np.int32(1), normal(2, 3), num_split=1),
        case("Split", np.int32(0), strings([b"a", b"b"]), num_split=2),
        case("Split", np.int32(1), normal(2, 5), num_split=2, label="uneven", error=INVALID),
        case("Split", np.int32(2), normal(2, 4), num_split=2, label="outside", error=INVALID),
        case("SplitV", normal(5, 2), i32([1, 4]), np.int32(0), num_split=2, dtypes=NUMERIC),
        case("SplitV", normal(2, 6), i64([2, -1, 0]), np.int32(1), num_split=3),
        case("SplitV", normal(2, 6), i32([6]), np.int32(-1), num_split=1),
        case("SplitV", normal(2, 6), i32([2, 3]), np.int32(1), num_split=2, label="sum", error=INVALID),
        case(
            "SplitV", normal(2, 6), i32([-1, -1]), np.int32(1), num_split=2, label="wildcards", error=INVALID
        ),
        case("Pack", [normal(2, 3), normal(2, 3)], dtypes=NUMERIC),
        case("Pack", [normal(2, 3), normal(2, 3)], axis=1),
        case("Pack", [normal(2, 3), normal(2, 3), normal(2, 3)], axis=-1),
        case("Pack", [normal(), normal()]),
        case("Pack", [strings([b"a"]), strings([b"b"])]),
        case("Pack", [normal(2), normal(3)], label="mismatch", error=INVALID),
        case("Pack", [normal(2), normal(2)], axis=2, label="outside", error=INVALID),
        case("Unpack", normal(2, 3), num=2, dtypes=NUMERIC),
        case("Unpack", normal(2, 3, 2), num=3, axis=1),
        case("Unpack", normal(2, 3, 2), num=2, axis=-1),
        case("Unpack", strings([b"a", b"b"]), num=2),
        case("Unpack", normal(2, 3), num=3, label="wrong num", error=INVALID),
        case("DynamicPartition", normal(5, 2), i32([0, 2, 0, 1, 2]), num_partitions=3, dtypes=FLOATS),
        case("DynamicPartition", normal(2, 3), i32([[1, 0, 1], [0, 0, 1]]), num_partitions=2),
        case("DynamicPartition", normal(3), i32([0, 0, 0]), num_partitions=2, label="empty part"),
        case("DynamicPartition", normal(40, 2), i32([i * i % 3 for i in range(40)]), num_partitions=3),
        case("DynamicPartition", normal(50, 2), i32([i * i % 11 for i in range(50)]), num_partitions=12),
        case(
            "DynamicPartition", normal(4), i32([9, 0, 4, 9]), num_partitions=10, dtypes="uint16 uint32 uint64"
        ),
        case("DynamicPartition", strings([b"a", b"b", b"c"]), i32([1, 0, 1]), num_partitions=2),
        case("DynamicPartition", normal(2), i32([0, 2]), num_partitions=2, label="outside", error=INVALID),
        case(
            "DynamicPartition", normal(2), i32([0, 1, 1]), num_partitions=2, label="mismatch", error=INVALID
        ),
    ]
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        cases += [
            case(op, [i32([2, 0]), i32([[1], [3]])], [normal(2, 3), normal(2, 1, 3)], dtypes=FLOATS),
            case(op, [i32([0, 1]), i32(2)], [ints(0, 9, (2,), "int32"), ints(0, 9, (), "int32")]),
            case(op, [i32([]), i32([1, 0])], [normal(0, 2), normal(2, 2)], label="empty"),
            case(op, [i32([0]), i32([1])], [normal(1, 2), normal(1, 3)], label="mismatch", error=INVALID),
            case(op, [i32([-1]), i32([1])], [normal(1, 2), normal(1, 2)], label="negative", error=INVALID),
        ]
    cases.append(case("DynamicStitch", [i32([0, 1]), i32([1, 2])], [normal(2), normal(2)], label="last wins"))
    return cases


def slices() -> list:
    """Slice, StridedSlice with every mask, its gradient and the assignment to a slice."""
    cases = [
        case("Slice", normal(3, 4), i32([1, 0]), i32([2, 3]), dtypes=NUMERIC),
        case("Slice", normal(3, 4), i64([0, 1]), i64([-1, -1])),
        case("Slice", normal(3, 4), i32([3, 0]), i32([0, 4]), label="empty"),
        case("Slice", normal(), i32([]), i32([])),
        case("Slice", strings([b"a", b"b", b"c"]), i32([1]), i32([2])),
        case("Slice", normal(3, 4), i32([2, 0]), i32([2, 4]), label="outside", error=INVALID),
        case("Slice", normal(3, 4), i32([-1, 0]), i32([1, 1]), label="negative", error=INVALID),
        case("Slice", normal(3, 4), i32([0]), i32([1]), label="short", error=INVALID),
    ]
    masks = [
        ([1, 0], [3, 4], [1, 2], {}),
        ([-1, 3], [-4, 0], [-1, -2], {}),
        ([0, 1], [9, 9], [2, 1], {}),
        ([1, 1], [2, 2], [1, 1], {"begin_mask": 1}),
        ([1, 1], [2, 2], [1, 1], {"begin_mask": 2, "end_mask": 1}),
        ([2, 3], [0, 0], [-1, -1], {"end_mask": 3}),
        ([1, 0], [2, 4], [1, 1], {"shrink_axis_mask": 1}),
        ([1, -2], [2, -1], [1, 1], {"shrink_axis_mask": 3}),
        ([0, 1], [0, 3], [1, 1], {"ellipsis_mask": 1}),
        ([0, 1, 0], [0, 3, 0], [1, 1, 1], {"new_axis_mask": 5}),
        ([0, 0, 1], [0, 0, 2], [1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2, "shrink_axis_mask": 4}),
        ([0, 0], [1, 0], [1, 1], {"new_axis_mask": 1, "ellipsis_mask": 2}),
        ([3], [1], [1], {}),
        ([1], [3], [1], {}),
    ]
    for begin, end, strides, attributes in masks:
        cut = (i32(begin), i32(end), i32(strides))
        cases.append(case("StridedSlice", normal(3, 4), *cut, label=f"{begin}{end}{strides}", **attributes))
        cases.append(strided_slice_grad(begin, end, strides, attributes))
    return cases + [
        case("StridedSlice", normal(2, 3, 2), i64([0, 1]), i64([2, 2]), i64([1, 1]), dtypes=NUMERIC),
        case("StridedSlice", strings([b"a", b"b", b"c"]), i32([2]), i32([0]), i32([-1])),
        case("StridedSlice", normal(3), i32([5]), i32([6]), i32([1]), shrink_axis_mask=1, error=INVALID),
        case("StridedSlice", normal(3), i32([0]), i32([2]), i32([0]), label="zero stride", error=INVALID),
        case(
            "StridedSlice", normal(3), i32([0, 0]), i32([1, 1]), i32([1, 1]), label="too many", error=INVALID
        ),
        case("StridedSlice", normal(3), i32([0]), i32([1]), i32([-1]), shrink_axis_mask=1, error=INVALID),
        case(
            "StridedSliceAssign", variable(normal(3, 4)), i32([1, 0]), i32([3, 4]), i32([1, 2]), normal(2, 2)
        ),
        case(
            "StridedSliceAssign",
            variable(normal(3, 4)),
            i32([1]),
            i32([2]),
            i32([1]),
            normal(4),
            shrink_axis_mask=1,
        ),
        case(
            "StridedSliceAssign",
            variable(normal(4)),
            i32([0]),
            i32([2]),
            i32([1]),
            normal(3),
            label="mismatch",
            error=INVALID,
        ),
    ]


def strided_slice_grad(begin: list, end: list, strides: list, masks: dict) -> object:
    """The case that spreads a gradient of the slice's shape over a 3 by 4 tensor."""
    sliced = np.empty((3, 4))[python_index(begin, end, strides, masks)]
    cut = (i32(begin), i32(end), i32(strides))
    label = f"{begin}{end}{strides}"
    return case("StridedSliceGrad", i32([3, 4]), *cut, normal(*sliced.shape), label=label, **masks)


def python_index(begin: list, end: list, strides: list, masks: dict) -> tuple:
    """The Python index that StridedSlice's lists and bit masks stand for."""

    def marked(mask: str, bit: int) -> bool:
        return bool(masks.get(mask, 0) >> bit & 1)

    index = []
    for bit, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        if marked("ellipsis_mask", bit):
            index.append(Ellipsis)
        elif marked("new_axis_mask", bit):
            index.append(None)
        elif marked("shrink_axis_mask", bit):
            index.append(first)
        else:
            start = None if marked("begin_mask", bit) else first
            stop = None if marked("end_mask", bit) else last
            index.append(slice(start, stop, step))
    return tuple(index)


def gathers() -> list:
    """Reading and writing by index."""
    cases = [
        case("Gather", normal(4, 3), i32([2, 0, 2]), dtypes=NUMERIC),
        case("Gather", normal(4, 3), i64([[1], [3]])),
        case("Gather", normal(4), np.int32(2)),
        case("Gather", strings([b"a", b"b"]), i32([1, 1, 0])),
        case("Gather", normal(4, 3), i32([]), label="none"),
        case("Gather", normal(4, 3), i32([4]), label="outside", error=INVALID),
        case("Gather", normal(4, 3), i32([-1]), label="negative", error=INVALID),
        case("GatherV2", normal(4, 3), i32([2, 0, 2]), np.int32(0), dtypes=NUMERIC),
        case("GatherV2", normal(2, 4, 3), i64([[1, 3], [0, 0]]), np.int32(1)),
        case("GatherV2", normal(2, 3), i32([2, 0]), np.int64(-1)),
        case("GatherV2", normal(2, 3), np.int32(1), np.int32(1)),
        case("GatherV2", normal(2, 4, 3, 2), i32([[1, 2], [0, 0]]), np.int32(2), batch_dims=1),
        case("GatherV2", normal(2, 4, 3), i32([[1, 3, 0], [0, 2, 2]]), np.int32(1), batch_dims=1),
        case("GatherV2", normal(4, 3), i32([4]), np.int32(0), label="outside", error=INVALID),
        case("GatherV2", normal(4, 3), i32([0]), np.int32(2), label="axis", error=INVALID),
        case("GatherNd", normal(3, 4), i32([[0, 1], [2, 3]]), dtypes=NUMERIC),
        case("GatherNd", normal(3, 4), i64([[2], [0], [2]])),
        case("GatherNd", normal(2, 3, 4), i32([[[1, 2]], [[0, 0]]])),
        case("GatherNd", normal(3, 4), i32([1, 2]), label="one element", gradient=False),
        case("GatherNd", normal(3), np.zeros((2, 0), np.int32), label="whole", gradient=False),
        case("GatherNd", strings([b"a", b"b"]), i32([[1]])),
        case("GatherNd", normal(3, 4), i32([[0, 4]]), label="outside", error=INVALID),
        case("GatherNd", normal(3), i32([[0, 0]]), label="too deep", error=INVALID),
        case("GatherNd", normal(7, 5, 3), i32([[i % 7, i % 5] for i in range(40)])),
        case(
            "GatherNd",
            normal(7, 5),
            i32([[i % 7, i % 6] for i in range(40)]),
            label="far",
            error=INVALID,
        ),
        case("ScatterNd", i32([[1], [3], [1]]), normal(3, 2), i32([4, 2]), dtypes=NUMERIC),
        case("ScatterNd", i64([[0, 1], [2, 0]]), normal(2), i64([3, 2])),
        case("ScatterNd", i32([[0], [0]]), normal(2), i32([1]), label="sum"),
        case("ScatterNd", i32([[4]]), normal(1, 2), i32([4, 2]), label="outside", error=INVALID),
        case("ScatterNd", i32([[1]]), normal(1, 3), i32([4, 2]), label="mismatch", error=INVALID),
    ]
    for axis in (-1, 0, 1):
        cases.append(
            case("OneHot", i64([[0, 2], [-1, 3]]), np.int32(3), np.float32(1), np.float32(0), axis=axis)
        )
    return cases + [
        case("OneHot", i64([[0, 2], [1, 1]]), np.int32(300), np.float32(2), np.float32(-1), label="wide"),
        case("OneHot", i64([-1, 299, 300]), np.int32(300), np.int32(2), np.int32(0), label="wide, outside"),
        case("OneHot", i32([1, 0]), np.int32(2), np.float64(5), np.float64(-1)),
        case("OneHot", np.uint8([1, 0]), np.int32(2), np.int32(1), np.int32(0)),
        case("OneHot", np.int32(1), np.int32(3), np.bool_(True), np.bool_(False)),
        case("OneHot", i32([1]), np.int32(0), np.float32(1), np.float32(0), label="no depth"),
        case("OneHot", i32([1]), np.int32(-1), np.float32(1), np.float32(0), label="negative", error=INVALID),
        case("OneHot", i32([1]), np.int32(2), np.float32(1), np.float32(0), axis=2, error=INVALID),
    ]


def paddings() -> list:
    """Padding, repeating and broadcasting."""
    pads = i32([[1, 0], [0, 2]])
    cases = [
        case("Pad", normal(2, 3), pads, dtypes=NUMERIC),
        case("Pad", normal(2), i64([[2, 1]])),
        case("Pad", normal(), np.zeros((0, 2), np.int32)),
        case("Pad", normal(2, 3), i32([[1, 0]]), label="short", error=INVALID),
        case("Pad", normal(2), i32([[-1, 0]]), label="negative", error=INVALID),
        case("PadV2", normal(2, 3), pads, normal(), dtypes=NUMERIC),
        case("PadV2", strings([b"a"]), i32([[1, 1]]), strings(b"-")),
    ]
    for mode in ("REFLECT", "SYMMETRIC"):
        cases += [
            case("MirrorPad", normal(3, 4), i32([[1, 2], [2, 0]]), mode=mode, dtypes=FLOATS + " int32"),
            case("MirrorPad", normal(3), i64([[0, 0]]), mode=mode),
            case("MirrorPad", strings([b"a", b"bc", b"d"]), i64([[1, 2]]), mode=mode),
            case("MirrorPad", normal(2), i32([[3, 0]]), mode=mode, label="too wide", error=INVALID),
            case("MirrorPadGrad", normal(6, 6), i32([[1, 2], [2, 0]]), mode=mode, dtypes=FLOATS),
        ]
    return cases + [
        case("Tile", normal(2, 3), i32([2, 1]), dtypes=NUMERIC),
        case("Tile", normal(2, 3), i64([1, 3])),
        case("Tile", normal(2), i32([0])),
        case("Tile", normal(), i32([])),
        case("Tile", strings([b"a", b"b"]), i32([2])),
        case("Tile", normal(2, 3), i32([2]), label="short", error=INVALID),
        case("Tile", normal(2), i32([-1]), label="negative", error=INVALID),
        case("BroadcastTo", normal(3), i32([2, 3]), dtypes=NUMERIC),
        case("BroadcastTo", normal(2, 1), i64([4, 2, 3])),
        case("BroadcastTo", normal(), i32([2])),
        case("BroadcastTo", normal(2, 3), i32([2, 2]), label="mismatch", error=INVALID),
        case("Fill", i32([2, 3]), normal(), dtypes=NUMERIC),
        case("Fill", i32([]), normal()),
        case("Fill", i64([0, 2]), normal()),
        case("Fill", i32([2]), strings(b"x")),
        case("Fill", i32([-1]), normal(), label="negative", error=INVALID),
    ]


def sequences() -> list:
    """Ranges, reversals, and the ops that find or compare elements."""
    cases = [
        case("Range", np.int32(1), np.int32(8), np.int32(3)),
        case("Range", np.int32(5), np.int32(-3), np.int32(-2)),
        case("Range", np.int64(3), np.int64(3), np.int64(1)),
        case("Range", np.float32(0), np.float32(1), np.float32(0.25), gradient=False),
        case("Range", np.float64(1), np.float64(0), np.float64(-0.3), gradient=False),
        case("Range", np.int32(0), np.int32(3), np.int32(0), label="zero step", error=INVALID),
        case("Range", np.int32(0), np.int32(3), np.int32(-1), label="wrong way", error=INVALID),
        case("LinSpace", np.float32(-1), np.float32(2), np.int32(7), gradient=False),
        case("LinSpace", np.float64(3), np.float64(1), np.int64(4), gradient=False),
        case("LinSpace", np.float32(3), np.float32(1), np.int32(1), gradient=False),
        case("LinSpace", np.float32(3), np.float32(1), np.int32(0), label="none", error=INVALID),
        case("Reverse", normal(2, 3), np.array([False, True]), dtypes=FLOATS + " int32"),
        case("Reverse", normal(2, 3), np.array([True, True])),
        case("ReverseV2", normal(2, 3), i32([1]), dtypes=NUMERIC),
        case("ReverseV2", normal(2, 3, 2), i64([0, -1])),
        case("ReverseV2", normal(2, 3), i32([]), label="none"),
        case("ReverseV2", strings([b"a", b"b"]), i32([0])),
        case("ReverseV2", bools((4,)), i32([0])),
        case("ReverseV2", normal(2, 3), i32([0, 0]), label="repeated", error=INVALID),
        case("ReverseV2", normal(2, 3), i32([2]), label="outside", error=INVALID),
        case("ReverseSequence", normal(2, 4, 2), i64([3, 0]), seq_dim=1, dtypes=FLOATS + " int32"),
        case("ReverseSequence", normal(4, 2), i32([4, 1]), seq_dim=0, batch_dim=1),
        case("ReverseSequence", strings([[b"a", b"b"], [b"c", b"d"]]), i32([2, 1]), seq_dim=1),
        case("ReverseSequence", normal(2, 4), i64([5, 0]), seq_dim=1, label="too long", error=INVALID),
        case("ReverseSequence", normal(4, 2), i32([4, 1]), seq_dim=0, batch_dim=-1, error="ValueError"),
        case("ReverseSequence", normal(2, 4), i64([1, 1, 1]), seq_dim=1, label="mismatch", error=INVALID),
        case("Where", np.array([[True, False], [True, True]])),
        case("Where", np.zeros((2, 0), np.bool_)),
        case("Where", np.array([False, False]), label="none"),
        case("Where", np.array(True), label="scalar", error=INVALID),
        case("Where", np.float32([0, -0.0, 2, np.nan])),
        case("Where", np.int32([[0, 3]])),
        case("Where", np.complex64([0, 1j])),
    ]
    letters = strings([b"b", b"a", b"b"])
    for op in ("Unique", "UniqueWithCounts"):
        cases += [
            case(op, i32([3, 1, 3, 2, 1]), gradient=False),
            case(op, np.float32([0.5, 0.5, -1]), gradient=False),
            case(op, i64([4, 4, 4]), out_idx="int64"),
            case(op, letters),
            case(op, i32([])),
            case(op, normal(2, 2), gradient=False, label="matrix", error=INVALID),
        ]
    return cases + [
        case("ListDiff", i32([1, 2, 3, 2, 5]), i32([2, 5])),
        case("ListDiff", np.float32([1, 2]), np.float32([2]), gradient=False),
        case("ListDiff", i64([1, 1]), i64([]), out_idx="int64"),
        case("ListDiff", letters, strings([b"a"])),
        case("ListDiff", i32([[1]]), i32([1]), label="matrix", error=INVALID),
    ]


def space_moves() -> list:
    """Blocks of space moved to channels or to the batch, and image patches."""
    crops = i32([[0, 1], [1, 0]])
    cases = [
        case("DepthToSpace", normal(1, 2, 2, 8), block_size=2, dtypes="float32 float64 half int32 uint8"),
        case("DepthToSpace", normal(2, 1, 3, 9), block_size=3),
        case("DepthToSpace", strings([[[[b"a", b"b", b"c", b"d"]]]]), block_size=2),
        case("SpaceToDepth", strings([[[[b"a"], [b"b"]], [[b"c"], [b"d"]]]]), block_size=2),
        case("DepthToSpace", normal(1, 2, 2, 6), block_size=2, label="indivisible", error=INVALID),
        case("SpaceToDepth", normal(1, 4, 4, 2), block_size=2, dtypes="float32 float64 half int32 uint8"),
        case("SpaceToDepth", normal(2, 3, 6, 1), block_size=3),
        case("SpaceToDepth", normal(1, 3, 4, 1), block_size=2, label="indivisible", error=INVALID),
        case("SpaceToBatch", normal(1, 2, 4, 2), i32([[0, 0], [0, 0]]), block_size=2, dtypes=FLOATS),
        case("SpaceToBatch", normal(2, 3, 3, 1), i64([[1, 0], [0, 1]]), block_size=2),
        case(
            "SpaceToBatch",
            normal(1, 3, 4, 1),
            i32([[0, 0], [0, 0]]),
            block_size=2,
            label="uneven",
            error=INVALID,
        ),
        case("BatchToSpace", normal(4, 1, 2, 2), i32([[0, 0], [0, 0]]), block_size=2, dtypes=FLOATS),
        case("BatchToSpace", normal(8, 2, 2, 1), crops, block_size=2),
        case("BatchToSpace", normal(3, 2, 2, 1), crops, block_size=2, label="uneven", error=INVALID),
        case(
            "SpaceToBatchND", normal(1, 2, 4, 2), i32([2, 2]), i32([[0, 0], [0, 0]]), dtypes=FLOATS + " int32"
        ),
        case("SpaceToBatchND", normal(2, 3, 2), i32([2]), i32([[1, 0]])),
        case("SpaceToBatchND", normal(1, 3, 5, 4), i64([2, 3]), i64([[1, 0], [0, 1]])),
        case("SpaceToBatchND", normal(1, 3, 4), i32([2]), i32([[0, 0]]), label="uneven", error=INVALID),
        case("SpaceToBatchND", normal(2, 1, 2), i32([3]), i32([[4, 1]]), label="all padding"),
        case("SpaceToBatchND", normal(2, 2, 5, 3), i32([2, 3]), i32([[3, 1], [0, 4]])),
        case(
            "BatchToSpaceND", normal(4, 1, 2, 2), i32([2, 2]), i32([[0, 0], [0, 0]]), dtypes=FLOATS + " int32"
        ),
        case("BatchToSpaceND", normal(6, 2, 3), i32([3]), i32([[1, 2]])),
        case("BatchToSpaceND", normal(8, 2, 2), i64([2, 2]), i64([[0, 1], [1, 0]])),
        case("BatchToSpaceND", normal(3, 2, 2), i32([2]), i32([[0, 0]]), label="uneven", error=INVALID),
        case("BatchToSpaceND", normal(6, 2, 3, 1), i32([2, 3]), i32([[3, 0], [4, 3]])),
        case("BatchToSpaceND", normal(3, 2, 2), i32([3]), i32([[4, 2]]), label="nothing left"),
    ]
    for padding in ("SAME", "VALID"):
        window = {"ksizes": [1, 2, 3, 1], "padding": padding}
        cases += [
            case(
                "ExtractImagePatches", normal(1, 4, 5, 2), strides=[1, 2, 1, 1], rates=[1, 1, 1, 1], **window
            ),
            case(
                "ExtractImagePatches",
                normal(1, 4, 5, 2),
                strides=[1, 1, 2, 1],
                rates=[1, 2, 2, 1],
                **window,
                dtypes=FLOATS,
            ),
        ]
    return cases


UNSIGNED = "uint16 uint32 uint64"


def unsigned_integers() -> list:
    """What ATen does not index by itself."""
    return [
        case("GatherV2", normal(3, 2), [2, 0], 0, dtypes=UNSIGNED),
        case("GatherV2", normal(3, 2), [[1], [0]], 1, dtypes=UNSIGNED),
        case("GatherNd", normal(3, 2), [[2, 1], [0, 0]], dtypes=UNSIGNED),
        case("Reverse", normal(3, 2), [True, False], dtypes=UNSIGNED),
        case("ReverseV2", normal(3, 2), [1], dtypes=UNSIGNED),
        case("MirrorPad", normal(3, 2), [[1, 1], [0, 1]], mode="REFLECT", dtypes=UNSIGNED),
        case("MirrorPadGrad", normal(5, 3), [[1, 1], [0, 1]], mode="REFLECT", dtypes=UNSIGNED),
        case("DynamicStitch", [literal([2, 0]), literal([1])], [normal(2, 2), normal(1, 2)], dtypes=UNSIGNED),
        case("Unique", literal([3, 5, 3], "T"), dtypes=UNSIGNED),
    ]


CASES = [
    *unsigned_integers(),
    case("Reshape", normal(0, 2), [-1, 0]),
    case("Reshape", normal(0, 0), [1, -1, 0]),
    case("Tile", normal(3, 1), [0, 2]),
    *identities(),
    *shape_questions(),
    *reshapes(),
    *joins(),
    *slices(),
    *gathers(),
    *paddings(),
    *sequences(),
    *space_moves(),
]
