"""Cases of images seen through projective transforms."""

from collections.abc import Iterator

import numpy as np

from op_cases import case, literal, normal

INVALID = "InvalidArgumentError"
TURNED = [0.81, 0.57, -1.03, -0.63, 0.79, 2.47, 0.0, 0.0]
FAR = [1.5, 0.2, -9.0, 0.1, 2.0, -11.0, 0.0, 0.0]
PERSPECTIVE = [1.1, 0.1, 0.3, -0.2, 0.9, 0.4, 0.05, -0.03]
IDENTITY = [1.0, 0, 0, 0, 1, 0, 0, 0]


def transformed() -> Iterator:
    """Every filling and interpolation; one transform for all images; what cannot be."""
    size = np.array([4, 7], np.int32)
    for version in ("V2", "V3"):
        op = f"ImageProjectiveTransform{version}"
        fill = [literal(0.7, "float32")] if version == "V3" else []
        for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
            for way in ("NEAREST", "BILINEAR"):
                how = {"interpolation": way, "fill_mode": mode, "rtol": 1e-4, "atol": 1e-4}
                given = literal([TURNED, FAR, PERSPECTIVE, IDENTITY], "float32")
                yield case(op, normal(4, 5, 6, 2), given, size, *fill, gradient=False, **how)
                yield case(op, normal(2, 5, 6, 1), literal([TURNED], "float32"), size, *fill, **how)
                yield case(
                    op, normal(1, 1, 1, 1), literal([FAR], "float32"), size, *fill, gradient=False, **how
                )
        turn, how = literal([TURNED], "float32"), {"interpolation": "BILINEAR", "gradient": False}
        many = "uint8 int32 int64 half bfloat16"
        yield case(op, normal(1, 3, 4, 2), literal([TURNED], "float32"), size, *fill, dtypes=many, **how)
        # The places are computed in single precision.
        yield case(op, normal(1, 3, 4, 2), turn, size, *fill, dtypes="float64", rtol=1e-6, atol=1e-6, **how)
        pole = literal([[1.0, 0, 0, 0, 1, 0, -1.0, 0]], "float32")
        yield case(op, normal(1, 3, 4, 2), pole, size, *fill, **how)
        yield case(op, normal(0, 3, 4, 2), literal(np.zeros((0, 8)), "float32"), size, *fill, **how)
        how = {"interpolation": "BILINEAR"}
        yield case(op, normal(3, 4, 2), turn, size, *fill, error=INVALID, **how)
        yield case(
            op, normal(3, 3, 4, 2), literal([TURNED, FAR], "float32"), size, *fill, error=INVALID, **how
        )
        yield case(
            op, normal(1, 3, 4, 2), literal([TURNED[:7]], "float32"), size, *fill, error=INVALID, **how
        )
        yield case(op, normal(1, 3, 4, 2), turn, size[:1], *fill, error=INVALID, **how)
        yield case(op, normal(1, 3, 4, 2), turn, 0 * size, *fill, error=INVALID, label="nothing", **how)


CASES = [*transformed()]
