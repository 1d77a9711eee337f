"""Cases of the neural-net family: activations, softmax and its losses, bias, normalisation, top k.

`CASES` is read by the op table test and by the golden generator; inputs stay below some hundred elements.
TopK and BatchNormWithGlobalNormalization have no cases: the oracle has no kernels for them any more.
"""

import numpy as np

from op_cases import case, ints, normal, positive, uniform

INVALID = "InvalidArgumentError"
FLOATS = "float32 float64"
ALL_FLOATS = "float32 float64 half bfloat16"
NAN, INF = np.nan, np.inf
SPECIAL = [NAN, INF, -INF, -0.0, 0.0, 6.0, 100.0, -100.0, 1e-4]


def activations() -> list:
    """Element-wise activations with their gradients, and the gradient ops on their own."""
    cases = []
    for op in ("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"):
        # NaN passes the gradient of Elu or not, as the processor has it.
        differentiates = False if op == "Elu" else None
        special = SPECIAL if differentiates is None else SPECIAL[1:]
        # The second input of EluGrad and SeluGrad is the activation's output, of the others its input.
        cases += [
            case(op, uniform(-8, 8, (3, 4)), dtypes=FLOATS),
            case(op, uniform(-8, 8, (3, 4)), dtypes="half bfloat16", atol=1e-2),
            case(op, normal()),
            case(op, normal(0, 3)),
            case(op, np.float32(SPECIAL), label="special", gradient=differentiates),
            case(op, np.float64(SPECIAL), label="special", gradient=differentiates),
            case(op + "Grad", normal(3, 4), uniform(-0.9, 8, (3, 4)), dtypes=ALL_FLOATS),
            case(op + "Grad", normal(0), normal(0)),
            case(op + "Grad", np.float32(np.ones(len(special))), np.float32(special), label="special"),
            case(op + "Grad", normal(3), normal(2), label="mismatch", error=INVALID),
        ]
    for op in ("Relu", "Relu6"):
        cases.append(case(op, ints(-9, 9, (3, 4)), dtypes="int32 int64"))
    return cases + [
        case("Selu", np.float32(SPECIAL * 4), label="special", dtypes=FLOATS),  # in whole vectors
        case("LeakyRelu", normal(5), alpha=0.5, dtypes=FLOATS),
        case("LeakyRelu", normal(5), alpha=1.5),
        case("LeakyRelu", normal(5), alpha=-0.1),
        case("LeakyReluGrad", normal(5), normal(5), alpha=0.5),
    ]


def softmaxes() -> list:
    """Softmax, its logarithm and the two cross entropies."""
    cases = []
    large = [[1000.0, 0.0, -1000.0], [-1e30, 1e30, 0.0]]
    for op in ("Softmax", "LogSoftmax"):
        cases += [
            case(op, normal(3, 5), dtypes=ALL_FLOATS),
            case(op, normal(4)),
            case(op, normal(2, 3, 4)),
            case(op, normal(0, 4)),
            case(op, np.float32(large), label="large"),
            case(op, np.float64(large), label="large"),
            case(op, np.float32([[INF, 0.0], [-INF, 0.0], [NAN, 1.0]]), label="special"),
            case(op, normal(), label="scalar", error=INVALID),
        ]
    cross, sparse = "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"
    return cases + [
        case(cross, normal(3, 4), uniform(0, 1, (3, 4)), dtypes="float32 float64 half"),
        case(cross, normal(3, 4), uniform(0, 1, (1, 4)), label="broadcast labels", gradient=False),
        case(cross, normal(1, 4), uniform(0, 1, (3, 4)), label="broadcast logits", gradient=False),
        case(cross, np.float32([[1000, 0, -1000]]), np.float32([[0, 0, 1]]), label="large"),
        case(cross, normal(0, 4), normal(0, 4)),
        case(cross, normal(3, 4), normal(3, 5), label="mismatch", error=INVALID),
        case(cross, normal(4), normal(4), label="vectors", error=INVALID),
        case(sparse, normal(3, 4), np.int64([1, 3, 0]), dtypes="float32 float64 half"),
        case(sparse, normal(3, 4), np.int32([1, 1, 2])),
        case(sparse, np.float32([[1000, 0, -1000]]), np.int32([2]), label="large"),
        case(sparse, normal(0, 4), np.zeros(0, np.int64)),
        case(sparse, normal(2, 4), np.int64([0, 4]), label="outside", error=INVALID),
        case(sparse, normal(2, 4), np.int64([0, -1]), label="negative", error=INVALID),
        case(sparse, normal(2, 4), np.int64([0, 1, 2]), label="mismatch", error=INVALID),
    ]


def biases() -> list:
    """A vector added along the channels, its gradient, and half the sum of squares."""
    cases = [
        case("BiasAddV1", normal(2, 3), normal(3), dtypes=FLOATS),
        case("L2Loss", normal(2, 3), dtypes=ALL_FLOATS),
    ]
    for layout, channel in (("NHWC", -1), ("NCHW", 1)):
        for shape in ((2, 3, 4, 5), (2, 3, 4), (2, 3), (2, 3, 2, 2, 2)):
            if layout == "NCHW" and len(shape) == 2:
                continue
            bias = normal(shape[channel])
            cases.append(case("BiasAdd", normal(*shape), bias, data_format=layout))
            cases.append(case("BiasAddGrad", normal(*shape), data_format=layout))
    return cases + [
        case("BiasAdd", normal(2, 3), normal(3), dtypes=ALL_FLOATS + " int32"),
        case("BiasAddGrad", normal(2, 3), dtypes=ALL_FLOATS),
        case("BiasAddGrad", normal(3), error="ValueError"),
        case("BiasAdd", normal(0, 3), normal(3)),
        case("BiasAdd", normal(2, 3), normal(2), label="mismatch", error=INVALID),
        case("BiasAdd", normal(3), normal(3), label="vector", error=INVALID),
        case("BiasAddV1", normal(2, 2, 3), normal(3)),
        case("L2Loss", normal()),
        case("L2Loss", normal(0)),
    ]


def local_responses() -> list:
    """Local response normalisation over channels."""
    settings = [
        {},
        {"depth_radius": 2, "bias": 2.0, "alpha": 1e-4, "beta": 0.75},
        {"depth_radius": 1, "beta": 1.0},
    ]
    cases = [case("LRN", normal(1, 2, 2, 7), dtypes="float32 half")]
    for attributes in settings:
        label = "".join(f"{name}{value}" for name, value in attributes.items()) or "defaults"
        cases.append(case("LRN", normal(2, 1, 2, 6), label=label, **attributes))
        triple = (normal(2, 1, 2, 6), normal(2, 1, 2, 6), normal(2, 1, 2, 6))
        cases.append(case("LRNGrad", *triple, label=label, gradient=False, **attributes))
    return [*cases, case("LRN", normal(2, 3), label="matrix", error=INVALID)]


def top_elements() -> list:
    """The k largest entries of rows, and whether a target is among them."""
    rows = np.float32([[3, 1, 3, 2], [1, 1, 1, 1], [-1, -2, 5, 5]])
    cases = [
        case("TopKV2", normal(3, 5), np.int32(2), dtypes=ALL_FLOATS + " int32 int64 uint8"),
        case("TopKV2", normal(5), np.int32(5)),
        case("TopKV2", normal(2, 3, 4), np.int32(1)),
        case("TopKV2", normal(2, 4), np.int32(0)),
        case("TopKV2", rows, np.int32(3), label="ties"),
        case("TopKV2", np.float32([NAN, 1, INF, -INF, 2]), np.int32(2), label="special"),
        case("TopKV2", normal(4), np.int32(5), label="too many", error=INVALID),
        case("TopKV2", normal(4), np.int32(-1), label="negative", error=INVALID),
        case("TopKV2", normal(), np.int32(1), label="scalar", error=INVALID),
    ]
    scores = np.float32([[0.1, 0.5, 0.5, 0.2], [NAN, 1, 2, 3], [1, INF, 0, 2], [1, 2, 3, 4]])
    for k in (1, 2, 3):
        cases += [
            case("InTopK", scores, np.int32([2, 3, 3, 0]), k=k),
            case("InTopK", scores, np.int64([1, 0, 1, 1]), k=k),
            case("InTopKV2", scores, np.int32([2, 3, 3, 0]), np.int32(k)),
            case("InTopKV2", scores, np.int64([0, 3, 0, 2]), np.int64(k)),
        ]
    return cases + [
        case("InTopK", scores, np.int32([9, -1, 4, 3]), k=2, label="outside"),
        case("InTopK", scores, np.int32([0, 1]), k=1, label="mismatch", error=INVALID),
    ]


def batch_normalisations() -> list:
    """Fused batch normalisation in training and inference, and its gradient ops.

    The reserve spaces are the kernel's own affair: only the three outputs before them are compared.
    """
    cases = []
    empty = np.zeros(0, np.float32)
    main = {"outputs": (0, 1, 2)}
    grads = {**main, "gradient": False}
    moments = (normal(3), positive(3))
    for op, suffix in (("FusedBatchNorm", ""), ("FusedBatchNormV2", "V2"), ("FusedBatchNormV3", "V3")):
        grad = "FusedBatchNormGrad" + suffix
        spare = (normal(3),) if suffix == "V3" else ()
        for layout, shape in (("NHWC", (2, 2, 3, 3)), ("NCHW", (2, 3, 2, 3))):
            affine = (normal(*shape), positive(3), normal(3))
            back = (normal(*shape), normal(*shape), positive(3), *moments, *spare)
            form = {"data_format": layout}
            # The oracle's CPU gradient of inference takes channels last only.
            mark = {"channels_last": ((0, 1), (0,))} if layout == "NCHW" else {}
            cases += [
                case(op, *affine, empty, empty, is_training=True, **form, **main),
                case(op, *affine, *moments, is_training=False, **form, **main),
                case(grad, *back, is_training=True, **form, **grads),
                case(grad, *back, is_training=False, **form, **mark, **grads),
            ]
        for training, spread in ((True, (empty, empty)), (False, (positive(3), positive(3)))):
            cases += [
                case(op, normal(*shape), positive(3), normal(3), *spread, is_training=training, **main)
                for shape in ((0, 2, 2, 3), (2, 0, 2, 3))
            ]
        tall, pair = normal(2, 3, 1, 2), (positive(2), normal(2))
        cases += [
            case(op, tall, *pair, empty, empty, epsilon=0.1, **main),
            case(op, normal(1, 1, 1, 2), *pair, empty, empty, label="one element", atol=5e-5, **main),
            case(op, tall, positive(3), normal(2), empty, empty, label="mismatch", error=INVALID),
        ]
    moving = {"exponential_avg_factor": 0.25, "label": "moving", **main}
    volume = {"data_format": "NDHWC", "label": "volume", **main}
    v3 = "FusedBatchNormV3"
    return cases + [
        case(v3, tall, *pair, normal(2), positive(2), **moving),
        case(v3, normal(2, 2, 2, 1, 2), *pair, empty, empty, **volume),
    ]


CASES = [
    *activations(),
    *softmaxes(),
    *biases(),
    *local_responses(),
    *top_elements(),
    *batch_normalisations(),
]
