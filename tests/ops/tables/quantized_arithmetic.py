"""Cases of arithmetic and layers over quantised integers: every integer is the oracle's.

But for sums with a scalar, which it rounds in another way: they may differ by one of 2^32 steps.
"""

import numpy as np

from op_cases import case, ints, listed, literal

INVALID, UNIMPLEMENTED = "InvalidArgumentError", "UnimplementedError"
F = np.float32
EIGHT, WIDE = ints(0, 256, (3, 4), "quint8"), (-(2**28), 2**28)
LOW, HIGH, LESS, MORE = F(-1.25), F(2.5), F(-0.75), F(1.75)


def elements() -> list:
    """Sums, products and biases."""
    add, mul, bias = "QuantizedAdd", "QuantizedMul", "QuantizedBiasAdd"
    ends = (LOW, HIGH, LESS, MORE)
    cases = []
    for op in (add, mul):
        cases += [
            case(op, EIGHT, EIGHT, *ends),
            case(op, EIGHT, ints(0, 256, (4,), "quint8"), *ends),
            *([case(op, ints(0, 256, (), "quint8"), EIGHT, *ends)] if op == mul else []),
            case(op, ints(0, 256, (0, 3), "quint8"), ints(0, 256, (0, 3), "quint8"), *ends),
        ]
    return cases + [
        case(bias, EIGHT, ints(0, 256, (4,), "quint8"), *ends, out_type="qint32"),
        case(
            bias,
            ints(-128, 128, (2, 2, 4), "qint8"),
            ints(-128, 128, (4,), "qint8"),
            *ends,
            out_type="qint32",
        ),
    ]


def products() -> list:
    """Products of matrices and convolutions."""
    op, conv = "QuantizedMatMul", "QuantizedConv2D"
    ends = (LOW, HIGH, LESS, MORE)
    image, kernel = ints(0, 256, (2, 5, 6, 3), "quint8"), ints(0, 256, (2, 3, 3, 4), "quint8")
    cases = [
        case(op, EIGHT, ints(0, 256, (4, 2), "quint8"), *ends),
        case(op, EIGHT, ints(0, 256, (3, 2), "quint8"), *ends, transpose_a=True),
        case(op, EIGHT, ints(0, 256, (2, 4), "quint8"), *ends, transpose_b=True),
        case(op, EIGHT, ints(0, 256, (5, 2), "quint8"), *ends, label="mismatch", error="ValueError"),
    ]
    for padding in ("SAME", "VALID"):
        for stride in (1, 2):
            form = {"padding": padding, "strides": [1, stride, stride, 1]}
            cases.append(case(conv, image, kernel, *ends, **form))
    return cases


def ranges() -> list:
    """Other ranges, joined and reshaped tensors."""
    wide = ints(*WIDE, (3, 4), "qint32")
    ends, op = (F(-300), F(900)), "Requantize"
    cases = []
    for dtype in ("quint8", "qint8"):
        cases.append(case(op, wide, *ends, F(-40), F(60), out_type=dtype, label=dtype))
    concat, both = "QuantizedConcat", [EIGHT, EIGHT]
    return cases + [
        case("QuantizeDownAndShrinkRange", wide, *ends, out_type="quint8"),
        case("RequantizationRange", wide, *ends),
        case("RequantizationRange", literal([3, 9, 2**20], "qint32"), *ends, label="above"),
        case(concat, np.int32(0), both, listed(LOW, LOW), listed(HIGH, HIGH)),
        case(concat, np.int32(1), both, listed(LOW, LESS), listed(HIGH, MORE)),
        case(concat, np.int32(1), both, listed(F(0.5), F(0.25)), listed(HIGH, MORE), label="above"),
        case("QuantizedReshape", EIGHT, np.int32([2, -1]), LOW, HIGH),
        case("QuantizedReshape", ints(0, 256, (3, 4), "quint8"), np.int64([12]), LOW, HIGH),
        case(op, wide, *ends, F(1), F(60), out_type="quint8", label="no zero", error=INVALID),
        case(op, wide, *ends, F(-1), F(-60), out_type="quint8", label="turned", error=INVALID),
    ]


def layers() -> list:
    """Activations and pooling."""
    cases = []
    for op in ("QuantizedRelu", "QuantizedRelu6"):
        cases += [
            case(op, EIGHT, LOW, HIGH),
            case(op, EIGHT, F(-9), F(12)),
        ]
    image = ints(0, 256, (2, 5, 6, 3), "quint8")
    for op in ("QuantizedMaxPool", "QuantizedAvgPool"):
        for padding in ("SAME", "VALID"):
            form = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": padding}
            cases.append(case(op, image, LOW, HIGH, **form))
        deep = {"ksize": [1, 2, 2, 3], "strides": [1, 1, 1, 3], "padding": "VALID"}
        cases.append(case(op, image, LOW, HIGH, label="depth", error=UNIMPLEMENTED, **deep))
    return cases


CASES = [*elements(), *products(), *ranges(), *layers()]
