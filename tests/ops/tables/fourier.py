"""Cases of the discrete Fourier transforms."""

from typing import Any

from op_cases import case, literal, normal

INVALID, STATIC = "InvalidArgumentError", "ValueError"
SHAPES = {"": [(4,), (2, 3, 5)], "2D": [(3, 4), (2, 4, 5)], "3D": [(2, 3, 4), (2, 3, 2, 5)]}
WIDE = {"rtol": 1e-9, "atol": 1e-10}
NARROW = {"rtol": 1e-5, "atol": 2e-5}


def complex_cases(op: str, kind: str) -> list[Any]:
    rank = int(kind[:1] or 1)
    return [
        [
            case(op, normal(*shape), dtypes="complex64", Tcomplex="complex64", **NARROW),
            case(op, normal(*shape), dtypes="complex128", Tcomplex="complex128", **WIDE),
        ]
        for shape in SHAPES[kind]
    ] + [
        case(op, normal(*(0 for _ in range(rank)), dtype="complex64"), Tcomplex="complex64", gradient=False),
        case(op, normal(0, *[3] * rank, dtype="complex64"), Tcomplex="complex64", gradient=False),
        case(op, normal(*[3] * (rank - 1), dtype="complex64"), Tcomplex="complex64", error=STATIC),
    ]


def real_cases(kind: str) -> list[Any]:
    rank = int(kind[:1] or 1)
    made: list[Any] = []
    for shape in SHAPES[kind]:
        sizes = list(shape[-rank:])
        spectrum = (*shape[:-1], shape[-1] // 2 + 1)
        cropped = [n - 1 for n in sizes]
        for lengths in (sizes, cropped):
            length = literal(lengths, "int32")
            for real, pair, tolerance in (("float32", "complex64", NARROW), ("float64", "complex128", WIDE)):
                types = {"Treal": real, "Tcomplex": pair}
                keywords = {**types, **tolerance, "gradient": False if lengths is cropped else None}
                made += case(f"RFFT{kind}", normal(*shape), length, dtypes=real, **keywords)
                if (kind != "3D" and lengths is sizes) or len(shape) == rank:
                    made += case(f"IRFFT{kind}", normal(*spectrum), length, dtypes=pair, **keywords)
    types = {"Treal": "float32", "Tcomplex": "complex64"}
    longer, wrong = literal([9] * rank, "int32"), literal([2] * (rank + 1), "int32")
    for op, dtype in (("RFFT", "float32"), ("IRFFT", "complex64")):
        x = normal(*[3] * rank)
        made += case(f"{op}{kind}", x, longer, dtypes=dtype, error=INVALID, **types)
        made += case(f"{op}{kind}", x, wrong, dtypes=dtype, error=STATIC, **types)
        made += case(f"{op}{kind}", x, 3, dtypes=dtype, error=STATIC, **types)
        made += case(f"{op}{kind}", x, literal([-1] * rank, "int32"), dtypes=dtype, error=INVALID, **types)
        made += case(f"{op}{kind}", normal(*[3] * (rank - 1)), longer, dtypes=dtype, error=STATIC, **types)
        made += case(
            f"{op}{kind}",
            normal(0, *[3] * rank),
            literal([3] * rank, "int32"),
            dtypes=dtype,
            gradient=False,
            **types,
        )
    return made


CASES = [
    [complex_cases(f"{inverse}FFT{kind}", kind) for inverse in ("", "I") for kind in SHAPES],
    [real_cases(kind) for kind in SHAPES],
]
