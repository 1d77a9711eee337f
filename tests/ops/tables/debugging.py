"""Cases of what a debugger puts between nodes."""

import numpy as np

from op_cases import bools, case, literal, normal, strings

INVALID = "InvalidArgumentError"
SPECIAL = [1.0, -2.0, 0.0, np.inf, -np.inf, np.nan, 5.0, 0.0, 1e-3]
NAMED = {"tensor_name": "a:0"}
SUMMARY = "DebugNumericSummary"

CASES = [
    [
        [
            case(op, normal(2, 3), dtypes="float32 half int32 complex64", gradient=False),
            case(op, strings([b"a", b"b"]), dtypes="string"),
            case(op, normal(0, 2), gradient=False),
        ]
        for op in ("Copy", "CopyHost")
    ],
    case("DebugIdentity", normal(2, 3), dtypes="float32 half int32 complex64", gradient=False, **NAMED),
    case("DebugIdentity", strings([b"a", b"b"]), dtypes="string", **NAMED),
    case("DebugIdentity", normal(2), tensor_name="a/b", label="no slot", gradient=False),
    case("DebugIdentity", normal(2), label="no name", error=INVALID),
    case("DebugIdentity", normal(2), tensor_name="a:0:1", label="name", error=INVALID),
    case("DebugIdentity", normal(2), tensor_name="a:b", label="slot", error=INVALID),
    case("DebugIdentity", normal(2), debug_urls=["ftp://x"], label="url", error="InternalError", **NAMED),
    case(SUMMARY, literal(SPECIAL), dtypes="float32 float64", **NAMED),
    case(SUMMARY, literal(np.reshape(SPECIAL, (3, 3)), "T"), lower_bound=-1.5, upper_bound=3.0, **NAMED),
    case(SUMMARY, literal([1.0, 2.0, 3.0]), lower_bound=2.0, upper_bound=2.0, **NAMED),
    case(SUMMARY, normal(3, 2), dtypes="int8 int16 int32 int64 uint8 uint16 uint32 uint64", **NAMED),
    case(SUMMARY, bools((4,)), **NAMED),
    case(SUMMARY, normal(0, 2), **NAMED),
    case(SUMMARY, normal(), dtypes="float64", **NAMED),
    case(SUMMARY, literal([np.nan, np.nan]), label="nan", **NAMED),
    case(SUMMARY, normal(2), mute_if_healthy=True, **NAMED),
    case(SUMMARY, normal(2), dtypes="complex64", label="complex", error=INVALID, **NAMED),
    case(SUMMARY, strings([b"a"]), label="text", error=INVALID, **NAMED),
]
