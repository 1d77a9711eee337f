"""Cases of the convolution family: convolutions and poolings of images and volumes, gradient ops, dilation.

`CASES` is read by the op table test and by the golden generator. The oracle's CPU kernels mostly know only
channels-last layouts, so cases in NCHW and NCDHW are marked `channels_last`: it computes them transposed.
It differentiates no dilated convolution on a CPU, so those cases compare forward values only.
"""

from collections.abc import Iterator

import numpy as np

from op_cases import case, normal

INVALID = "InvalidArgumentError"
FLOATS = "float32 float64"
Shape = tuple[int, ...]


def i32(value: object) -> np.ndarray:
    """An int32 literal."""
    return np.array(value, np.int32)


def to_layout(shape: Shape, layout: str) -> Shape:
    """A channels-last shape (or list of strides and the like) in `layout`."""
    return tuple(shape) if layout[-1] == "C" else (shape[0], shape[-1], *shape[1:-1])


def output_size(size: int, window: int, stride: int, dilation: int, padding: str) -> int:
    """Positions of a window along one dimension."""
    reach = (window - 1) * dilation + 1
    return -(-size // stride) if padding == "SAME" else -(-(size - reach + 1) // stride)


def slide(
    image: Shape, window: Shape, strides: Shape, padding: str, dilations: Shape, channels: int
) -> Shape:
    """The channels-last shape that a sliding window (given by its spatial sizes) leaves of an image."""
    sizes = zip(image[1:-1], window, strides, dilations, strict=True)
    return (image[0], *(output_size(*one, padding) for one in sizes), channels)


def last(layout: str, inputs: tuple[int, ...], outputs: tuple[int, ...] = (0,)) -> dict:
    """The `data_format` attribute and, for channels-first layouts, the mark of the tensors to transpose."""
    mark = {} if layout[-1] == "C" else {"channels_last": (inputs, outputs)}
    return {"data_format": layout, **mark}


# image, filter (height, width, in, out), strides, padding, dilations
CONVOLUTIONS = [
    ((1, 4, 4, 2), (3, 3, 2, 3), (1, 1), "SAME", (1, 1)),
    ((2, 5, 4, 1), (2, 3, 1, 2), (1, 1), "VALID", (1, 1)),
    ((1, 5, 6, 2), (3, 2, 2, 2), (2, 2), "SAME", (1, 1)),
    ((1, 6, 5, 2), (3, 3, 2, 2), (2, 1), "VALID", (1, 1)),
    ((1, 4, 4, 3), (1, 1, 3, 4), (1, 1), "SAME", (1, 1)),
    ((1, 5, 5, 1), (1, 1, 1, 2), (2, 2), "VALID", (1, 1)),
    ((1, 7, 6, 2), (3, 2, 2, 2), (1, 1), "SAME", (2, 2)),
    ((1, 7, 6, 2), (3, 2, 2, 2), (1, 1), "VALID", (2, 3)),
    ((1, 2, 2, 1), (4, 4, 1, 1), (1, 1), "SAME", (1, 1)),
    ((1, 4, 4, 1), (4, 4, 1, 2), (1, 1), "VALID", (1, 1)),
]


def convolutions() -> Iterator:
    """Conv2D and its two gradient ops over the geometries above, in both layouts."""
    for image, kernel, strides, padding, dilations in CONVOLUTIONS:
        result = slide(image, kernel[:2], strides, padding, dilations, kernel[3])
        for layout in ("NHWC", "NCHW"):
            x, dy = to_layout(image, layout), to_layout(result, layout)
            attributes = {
                "strides": list(to_layout((1, *strides, 1), layout)),
                "dilations": list(to_layout((1, *dilations, 1), layout)),
                "padding": padding,
            }
            # The oracle's CPU kernels differentiate no dilated convolution.
            dilated = dilations != (1, 1)
            yield case(
                "Conv2D",
                normal(*x),
                normal(*kernel),
                **attributes,
                **last(layout, (0,)),
                gradient=False if dilated else None,
            )
            if layout == "NHWC" and not dilated:
                yield case("Conv2DBackpropInput", i32(x), normal(*kernel), normal(*dy), **attributes)
                yield case("Conv2DBackpropFilter", normal(*x), i32(kernel), normal(*dy), **attributes)


def other_convolutions() -> list:
    """More types, explicit paddings, groups and errors of Conv2D."""
    one = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    explicit = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0]}
    x, kernel = normal(1, 4, 5, 2), normal(3, 2, 2, 3)
    first = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 0, 0, 1, 0, 2, 1], "data_format": "NCHW"}
    return [
        case("Conv2D", x, kernel, **one, dtypes="float64"),
        case("Conv2D", x, kernel, **one, dtypes="half bfloat16", atol=5e-2),
        case("Conv2DBackpropInput", i32([1, 4, 5, 2]), kernel, normal(1, 4, 5, 3), **one, dtypes="float64"),
        case("Conv2DBackpropFilter", x, i32([3, 2, 2, 3]), normal(1, 4, 5, 3), **one, dtypes="float64"),
        case("Conv2D", x, kernel, strides=[1, 1, 1, 1], **explicit),
        case("Conv2D", x, kernel, strides=[1, 2, 2, 1], **explicit),
        case("Conv2D", normal(1, 2, 4, 5), kernel, strides=[1, 1, 2, 1], **first, channels_last=((0,), (0,))),
        case(
            "Conv2DBackpropInput",
            i32([1, 4, 5, 2]),
            kernel,
            normal(1, 3, 7, 3),
            strides=[1, 1, 1, 1],
            **explicit,
        ),
        case(
            "Conv2DBackpropFilter", x, i32([3, 2, 2, 3]), normal(1, 3, 7, 3), strides=[1, 1, 1, 1], **explicit
        ),
        case(
            "Conv2DBackpropInput",
            i32([1, 2, 4, 4]),
            normal(3, 3, 2, 3),
            normal(1, 3, 4, 4),
            strides=[1, 1, 1, 1],
            padding="SAME",
            data_format="NCHW",
            channels_last=((0, 2), (0,)),
        ),
        case(
            "Conv2DBackpropFilter",
            normal(1, 2, 4, 4),
            i32([3, 3, 2, 3]),
            normal(1, 3, 4, 4),
            strides=[1, 1, 1, 1],
            padding="SAME",
            data_format="NCHW",
            channels_last=((0, 2), ()),
        ),
        case("Conv2D", normal(1, 4, 4, 4), normal(3, 3, 2, 4), **one, label="groups", gradient=False),
        case("Conv2D", normal(0, 4, 4, 2), kernel, **one),
        case("Conv2D", normal(1, 4, 4, 2), normal(3, 3, 3, 1), **one, label="channels", error=INVALID),
        case(
            "Conv2D",
            normal(1, 2, 2, 1),
            normal(3, 3, 1, 1),
            strides=[1, 1, 1, 1],
            padding="VALID",
            label="too small",
            error="ValueError",
        ),
        case("Conv2D", normal(4, 4, 2), kernel, **one, label="rank", error=INVALID),
    ]


# image, filter (height, width, in, multiplier), strides, padding; the oracle dilates none of these on a CPU
DEPTHWISE = [
    ((1, 4, 4, 2), (3, 3, 2, 1), (1, 1), "SAME"),
    ((2, 4, 5, 2), (2, 3, 2, 3), (1, 1), "VALID"),
    ((1, 5, 5, 3), (3, 3, 3, 2), (2, 2), "SAME"),
    ((1, 6, 5, 2), (3, 2, 2, 2), (2, 2), "VALID"),
]


def depthwise_convolutions() -> Iterator:
    """DepthwiseConv2dNative and its two gradient ops."""
    op = "DepthwiseConv2dNative"
    for image, kernel, strides, padding in DEPTHWISE:
        result = slide(image, kernel[:2], strides, padding, (1, 1), kernel[2] * kernel[3])
        for layout in ("NHWC", "NCHW"):
            attributes = {"strides": list(to_layout((1, *strides, 1), layout)), "padding": padding}
            x = normal(*to_layout(image, layout))
            yield case(op, x, normal(*kernel), **attributes, **last(layout, (0,)))
            if layout == "NHWC":
                dy = normal(*result)
                yield case(op + "BackpropInput", i32(image), normal(*kernel), dy, **attributes, dtypes=FLOATS)
                yield case(op + "BackpropFilter", x, i32(kernel), dy, **attributes, dtypes=FLOATS)
    one = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    yield case(op, normal(1, 3, 3, 2), normal(2, 2, 2, 2), **one, dtypes="float64 half")
    yield case(op, normal(1, 3, 3, 2), normal(2, 2, 3, 1), **one, label="channels", error=INVALID)
    yield case(
        op,
        normal(1, 3, 4, 2),
        normal(2, 2, 2, 2),
        strides=[1, 1, 1, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 1, 0, 1, 0, 0],
    )


# volume, filter (depth, height, width, in, out), strides, padding, dilations
VOLUMES = [
    ((1, 2, 3, 3, 2), (2, 2, 2, 2, 2), (1, 1, 1), "SAME", (1, 1, 1)),
    ((1, 3, 4, 3, 1), (2, 3, 2, 1, 2), (1, 2, 1), "VALID", (1, 1, 1)),
    ((1, 3, 3, 4, 1), (2, 1, 3, 1, 2), (2, 2, 2), "SAME", (1, 1, 1)),
]


def volume_convolutions() -> Iterator:
    """Conv3D and its two gradient ops."""
    for volume, kernel, strides, padding, dilations in VOLUMES:
        result = slide(volume, kernel[:3], strides, padding, dilations, kernel[4])
        for layout in ("NDHWC", "NCDHW"):
            attributes = {"strides": list(to_layout((1, *strides, 1), layout)), "padding": padding}
            yield case(
                "Conv3D",
                normal(*to_layout(volume, layout)),
                normal(*kernel),
                **attributes,
                **last(layout, (0,)),
                dtypes=FLOATS if layout == "NDHWC" else "float32",
            )
            if layout == "NDHWC":
                dy = normal(*result)
                yield case("Conv3DBackpropInputV2", i32(volume), normal(*kernel), dy, **attributes)
                yield case("Conv3DBackpropFilterV2", normal(*volume), i32(kernel), dy, **attributes)
    yield case(
        "Conv3D",
        normal(1, 2, 2, 2, 2),
        normal(1, 1, 1, 3, 1),
        strides=[1, 1, 1, 1, 1],
        padding="SAME",
        label="channels",
        error=INVALID,
    )


# image, window, strides, padding
POOLINGS = [
    ((1, 4, 4, 2), (2, 2), (2, 2), "SAME"),
    ((2, 5, 4, 1), (3, 2), (1, 1), "SAME"),
    ((1, 5, 5, 2), (3, 3), (2, 2), "VALID"),
    ((1, 5, 6, 2), (2, 3), (2, 1), "SAME"),
    ((1, 4, 3, 1), (1, 1), (2, 2), "VALID"),
    ((1, 2, 2, 1), (3, 3), (1, 1), "SAME"),
]


def poolings() -> Iterator:
    """MaxPool and AvgPool with their gradient ops, in both layouts."""
    for image, window, strides, padding in POOLINGS:
        result = slide(image, window, strides, padding, (1, 1), image[-1])
        for layout in ("NHWC", "NCHW"):
            x, y = to_layout(image, layout), to_layout(result, layout)
            full = {
                "ksize": list(to_layout((1, *window, 1), layout)),
                "strides": list(to_layout((1, *strides, 1), layout)),
            }
            sizes = (i32(full["ksize"]), i32(full["strides"]))
            pad = {"padding": padding}
            for op in ("MaxPool", "AvgPool"):
                yield case(op, normal(*x), **full, **pad, **last(layout, (0,)))
            if layout == "NCHW":
                continue
            yield case("MaxPoolV2", normal(*x), *sizes, **pad)
            yield case("AvgPoolGrad", i32(x), normal(*y), **full, **pad, dtypes=FLOATS)
            yield from max_pool_gradients(x, y, full, pad)


def max_pool_gradients(x: Shape, y: Shape, full: dict, pad: dict) -> Iterator:
    """The gradient ops of a pooling, whose maxima must be those of its input."""
    image = np.random.RandomState(len(x) + sum(x) * 7 + full["ksize"][1]).permutation(int(np.prod(x)))
    image = image.reshape(x).astype(np.float32)
    pooled = pool_maxima(image, y, full, pad["padding"])
    sizes = (i32(full["ksize"]), i32(full["strides"]))
    yield case("MaxPoolGrad", image, pooled, normal(*y), **full, **pad)
    yield case("MaxPoolGradV2", image, pooled, normal(*y), *sizes, **pad)
    yield case("MaxPoolGradGrad", image, pooled, normal(*x), **full, **pad)
    yield case("MaxPoolGradGradV2", image, pooled, normal(*x), *sizes, **pad)


def pool_maxima(image: np.ndarray, shape: Shape, full: dict, padding: str) -> np.ndarray:
    """The maxima of all windows, found one by one."""
    pooled = np.empty(shape, image.dtype)
    before = [0, 0]
    for axis in (0, 1):
        window, stride = full["ksize"][axis + 1], full["strides"][axis + 1]
        missing = (shape[axis + 1] - 1) * stride + window - image.shape[axis + 1]
        before[axis] = max(missing, 0) // 2 if padding == "SAME" else 0
    for row in range(shape[1]):
        for column in range(shape[2]):
            top, left = row * full["strides"][1] - before[0], column * full["strides"][2] - before[1]
            patch = image[:, max(top, 0) : top + full["ksize"][1], max(left, 0) : left + full["ksize"][2]]
            pooled[:, row, column] = patch.max((1, 2))
    return pooled


def other_poolings() -> Iterator:
    """Arg-max pooling, special values, more types, pooling of channels and errors."""
    two = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1]}
    overlapping = {"ksize": [1, 3, 3, 1], "strides": [1, 1, 1, 1]}
    ties = np.float32(np.arange(16).reshape(1, 4, 4, 1) // 5)
    yield case(
        "MaxPool", normal(1, 4, 4, 2), **two, padding="VALID", dtypes="float64 half bfloat16 int32 uint8"
    )
    yield case("AvgPool", normal(1, 4, 4, 2), **two, padding="VALID", dtypes="float64 half bfloat16")
    yield case("MaxPool", ties, **overlapping, padding="VALID", label="ties")
    yield case(
        "MaxPool",
        normal(1, 2, 2, 4),
        ksize=[1, 1, 1, 2],
        strides=[1, 1, 1, 2],
        padding="VALID",
        gradient=False,
        label="channels",
    )
    yield case(
        "MaxPool",
        normal(1, 4, 4, 1),
        **two,
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 1, 0, 1, 0, 0],
        gradient=False,
    )
    yield case(
        "MaxPool", normal(1, 2, 2, 1), **overlapping, padding="VALID", label="too small", error="ValueError"
    )
    yield case("MaxPool", normal(4, 4, 1), **two, padding="SAME", label="rank", error=INVALID)
    yield case(
        "AvgPool", normal(1, 2, 2, 1), **overlapping, padding="VALID", label="too small", error="ValueError"
    )
    for padding in ("SAME", "VALID"):
        for window in (two, overlapping):
            yield case("MaxPoolWithArgmax", normal(2, 4, 5, 2), **window, padding=padding, dtypes=FLOATS)
    yield case(
        "MaxPoolWithArgmax", normal(2, 4, 4, 2), **two, padding="VALID", Targmax="int32", gradient=False
    )
    yield case("MaxPoolWithArgmax", normal(2, 4, 4, 2), **two, padding="VALID", include_batch_in_index=True)
    yield case(
        "MaxPoolGradWithArgmax",
        normal(1, 2, 2, 2),
        normal(1, 1, 1, 2),
        np.int64([[[[6, 3]]]]),
        **two,
        padding="VALID",
        gradient=False,
    )


def volume_poolings() -> Iterator:
    """MaxPool3D and AvgPool3D with the gradient of the latter, in both layouts."""
    geometries = [
        ((1, 2, 4, 4, 1), (2, 2, 2), (2, 2, 2), "VALID"),
        ((1, 3, 3, 4, 2), (2, 1, 3), (1, 2, 1), "SAME"),
    ]
    for volume, window, strides, padding in geometries:
        result = slide(volume, window, strides, padding, (1, 1, 1), volume[-1])
        for layout in ("NDHWC", "NCDHW"):
            full = {
                "ksize": list(to_layout((1, *window, 1), layout)),
                "strides": list(to_layout((1, *strides, 1), layout)),
                "padding": padding,
            }
            for op in ("MaxPool3D", "AvgPool3D"):
                yield case(op, normal(*to_layout(volume, layout)), **full, **last(layout, (0,)))
            if layout == "NDHWC":
                yield case("AvgPool3DGrad", i32(volume), normal(*result), **full)
    x = np.float32(np.random.RandomState(3).permutation(16)).reshape(1, 2, 2, 4, 1)
    y = x.reshape(1, 2, 2, 2, 2, 1).max((1, 2, 4)).reshape(1, 1, 1, 2, 1)
    eight = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
    yield case("MaxPool3DGrad", x, y, normal(1, 1, 1, 2, 1), **eight)
    yield case("MaxPool3DGradGrad", x, y, normal(1, 2, 2, 4, 1), **eight)


def dilations() -> Iterator:
    """Grey-scale dilation and its gradients."""
    for rates, padding in (([1, 1, 1, 1], "SAME"), ([1, 2, 1, 1], "VALID"), ([1, 1, 2, 1], "SAME")):
        attributes = {"strides": [1, 1, 1, 1], "rates": rates, "padding": padding}
        yield case("Dilation2D", normal(1, 4, 4, 2), normal(2, 2, 2), **attributes, dtypes=FLOATS)
        result = slide((1, 4, 4, 2), (2, 2), (1, 1), padding, (rates[1], rates[2]), 2)
        for wanted in ("Input", "Filter"):
            yield case(
                "Dilation2DBackprop" + wanted,
                normal(1, 4, 4, 2),
                normal(2, 2, 2),
                normal(*result),
                **attributes,
            )
    yield case(
        "Dilation2D",
        normal(1, 5, 5, 1),
        normal(2, 3, 1),
        strides=[1, 2, 2, 1],
        rates=[1, 1, 1, 1],
        padding="SAME",
    )
    yield case(
        "Dilation2D",
        normal(1, 4, 4, 2),
        normal(2, 2, 3),
        strides=[1, 1, 1, 1],
        rates=[1, 1, 1, 1],
        padding="SAME",
        label="depth",
        error=INVALID,
    )


CASES = [
    *convolutions(),
    *other_convolutions(),
    *depthwise_convolutions(),
    *volume_convolutions(),
    *poolings(),
    *other_poolings(),
    *volume_poolings(),
    *dilations(),
]
