"""Cases of layouts of images, updated slices, products of two types, and finite numbers."""

import numpy as np

from op_cases import case, literal, normal, strings, variable

INVALID = "InvalidArgumentError"
INF, NAN = np.inf, np.nan
FORMATS = [("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC"), ("ABCD", "DCBA"), ("NHWC", "NHWC")]
BAD_FORMATS = [("NHW", "NCHW"), ("NHWC", "NCHX"), ("NHWC", "NDHWC")]


def formats(op: str, *inputs: object, formats: list, **keywords: object) -> list:
    """A case of `op` for each pair of formats."""
    return [case(op, *inputs, src_format=source, dst_format=target, **keywords) for source, target in formats]


def strided(x: object, begin: list, end: list, value: object, strides: list | None = None, **rest: object):
    """A case of TensorStridedSliceUpdate."""
    ends = [literal(v, "int32") for v in (begin, end, strides or [1] * len(begin))]
    return case("TensorStridedSliceUpdate", x, *ends, value, **rest)


CASES = [
    formats("DataFormatDimMap", literal([0, 3, -1, -4, 2]), formats=FORMATS),
    formats("DataFormatVecPermute", literal([10, 11, 12, 13]), formats=FORMATS),
    formats("DataFormatDimMap", literal(1), formats=BAD_FORMATS, error=INVALID),
    formats("DataFormatVecPermute", literal([1, 2, 3, 4]), formats=BAD_FORMATS, error=INVALID),
    case("DataFormatDimMap", literal([[1, 2], [3, -1]], "int64"), dtypes="int64"),
    case("DataFormatDimMap", literal([4, 0, -5]), src_format="NDHWC", dst_format="NCDHW"),
    case("DataFormatDimMap", literal([], "int32")),
    case("DataFormatVecPermute", literal([[0, 1], [2, 3], [4, 5], [6, 7]], "int64"), dtypes="int64"),
    case("DataFormatVecPermute", literal([[0, 1], [2, 3]])),
    case("DataFormatVecPermute", literal([5, 6]), src_format="HWNC", dst_format="WHNC"),
    case("DataFormatVecPermute", literal([5, 6, 7]), src_format="NDHWC", dst_format="NCDHW"),
    case("DataFormatVecPermute", literal([5, 6, 7, 8, 9]), src_format="NDHWC", dst_format="NCDHW"),
    case("DataFormatVecPermute", literal([1, 2, 3]), error=INVALID),
    case("DataFormatVecPermute", literal(1), error=INVALID),
    case("DataFormatVecPermute", literal([[1, 2, 3]] * 4), error=INVALID),
    strided(normal(2, 3), [0, 1], [2, 3], normal(2, 2), dtypes="float32 float64 half int32 complex64"),
    strided(normal(2, 3), [0, 1], [1, 3], normal(2), begin_mask=0, shrink_axis_mask=1, label="row"),
    strided(normal(2, 3), [0, 1], [2, 3], normal(1), label="spread"),
    strided(normal(2, 3), [0, 1], [2, 3], normal(), label="scalar"),
    strided(normal(6), [-1], [-7], normal(3), [-2], label="backwards"),
    strided(normal(2, 3, 4), [0, 1], [0, 3], normal(2, 3, 2), ellipsis_mask=1, label="ellipsis"),
    strided(normal(2, 3), [0, 0], [0, 1], normal(1, 1, 3), new_axis_mask=1, label="new axis"),
    strided(normal(4), [2], [2], normal(0), label="empty"),
    strided(normal(4), [0], [2], normal(3), label="size", error=INVALID),
    strided(normal(4), [4], [5], normal(), shrink_axis_mask=1, label="outside", error=INVALID),
    strided(strings([b"a", b"b", b"c"]), [0], [3], strings([b"y", b"z"]), [2], label="text", dtypes="string"),
    case("BatchMatMulV3", normal(2, 3, 4), normal(2, 4, 2), dtypes="float32 float64", Tout="T"),
    case("BatchMatMulV3", normal(2, 3, 4), normal(2, 4, 2), dtypes="complex64 int32 int64", Tout="T"),
    case("BatchMatMulV3", normal(2, 1, 3, 4), normal(5, 4, 2), Tout="T"),
    case("BatchMatMulV3", normal(2, 4, 3), normal(2, 2, 4), adj_x=True, adj_y=True, Tout="T"),
    case("BatchMatMulV3", normal(0, 3, 4), normal(1, 4, 2), Tout="T"),
    case("BatchMatMulV3", normal(2, 3, 4), normal(3, 4, 2), Tout="T", error=INVALID),
    [
        case("BatchMatMulV3", literal([[100, 7]], x), literal([[101], [3]], y), Tout="int32", label=x + y)
        for x in ("int8", "uint8")
        for y in ("int8", "uint8")
    ],
    case("CheckNumericsV2", normal(2, 3), dtypes="float32 float64 half bfloat16", message="m"),
    case("CheckNumericsV2", normal(0), message="m"),
    case("CheckNumericsV2", literal([1.0, INF]), message="m", label="inf", error=INVALID),
    case("CheckNumericsV2", literal([-INF, NAN]), message="m", label="nan", error=INVALID),
    case("RefIdentity", variable(normal(2, 3)), dtypes="float32 int32"),
    case("RefSelect", literal(1), [variable(normal(2)), variable(normal(2))]),
    case("RefSelect", literal(0), [variable(normal(2)), variable(normal(3))], label="shapes"),
    case("RefSelect", literal(2), [variable(normal(2)), variable(normal(2))], label="high", error=INVALID),
    case("RefSelect", literal(-1), [variable(normal(2)), variable(normal(2))], label="low", error=INVALID),
    case("RefSelect", literal([0]), [variable(normal(2))], label="vector", error="ValueError"),
    case("Fact"),
]
