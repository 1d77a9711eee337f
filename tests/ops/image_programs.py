"""Calls of `tf.image` that are compared with TensorFlow: their values, static shapes, errors, names of nodes.

Each program is a function of the module ``tf`` and gives one tensor or a list. It is run by TensorFlow's
interpreter too, so it is written for any Python 3. Inputs come from `image`, equal in every process.
"""

from __future__ import annotations

import zlib

import numpy as np

PROGRAMS = {}


def image(*shape, dtype="float32", key="image"):
    """Values in [0, 1), or in [0, 256) of integer types."""
    random = np.random.RandomState(zlib.crc32(repr((shape, dtype, key)).encode()))
    values = random.uniform(size=shape)
    return values.astype(dtype) if "float" in dtype else (values * 256).astype(dtype)


def fed(tf, *shape, known=None, dtype="float32"):
    """A tensor of that value and of a static shape of which `known` is known."""
    return tf.placeholder_with_default(image(*shape, dtype=dtype), known)


def add(name, function):
    """Adds a program."""
    assert name not in PROGRAMS, name
    PROGRAMS[name] = function


# ---- sizes

for _method in range(4):
    for _align in (False, True):
        for _shape in ((2, 5, 4, 3), (5, 4, 3)):
            add(
                f"resize_{_method}_{_align}_{len(_shape)}d",
                lambda tf, m=_method, a=_align, s=_shape: tf.image.resize_images(image(*s), [7, 3], m, a),
            )
    add(
        f"resize_bytes_{_method}",
        lambda tf, m=_method: tf.image.resize_images(image(5, 4, 1, dtype="uint8"), [3, 6], method=m),
    )
add("resize_same", lambda tf: tf.image.resize_images(image(5, 4, 1, dtype="uint8"), [5, 4]))
add("resize_unknown", lambda tf: tf.image.resize_images(fed(tf, 5, 4, 1, known=[None, None, 1]), [5, 4]))
add(
    "resize_by_tensor",
    lambda tf: tf.image.resize_images(image(5, 4, 1), tf.placeholder_with_default([3, 2], [2])),
)
add(
    "resize_in_proportion",
    lambda tf: tf.image.resize_images(image(5, 4, 1), [9, 3], preserve_aspect_ratio=True),
)
add("resize_no_shape", lambda tf: tf.image.resize_images(fed(tf, 5, 4, 1), [3, 3]))
add("resize_matrix", lambda tf: tf.image.resize_images(image(5, 4), [3, 3]))
add("resize_method", lambda tf: tf.image.resize_images(image(5, 4, 1), [3, 3], 9))
add("resize_three_sizes", lambda tf: tf.image.resize_images(image(5, 4, 1), [3, 3, 3]))
add("resize_fractions", lambda tf: tf.image.resize_images(image(5, 4, 1), [3.5, 3.5]))

# ---- parts

SIZES = [(3, 8), (7, 2), (5, 4), (1, 1), (9, 9)]
for _height, _width in SIZES:
    _name = f"{_height}x{_width}"
    for _shape in ((5, 4, 2), (2, 5, 4, 2)):
        _rank = f"{len(_shape)}d_{_name}"
        add(
            "crop_or_pad_" + _rank,
            lambda tf, s=_shape, h=_height, w=_width: tf.image.resize_image_with_crop_or_pad(image(*s), h, w),
        )
        add(
            "resize_with_pad_" + _rank,
            lambda tf, s=_shape, h=_height, w=_width: tf.image.resize_image_with_pad(image(*s), h, w),
        )
    add(
        "crop_or_pad_unknown_" + _name,
        lambda tf, h=_height, w=_width: tf.image.resize_image_with_crop_or_pad(
            fed(tf, 5, 4, 2, known=[None, None, 2]), h, w
        ),
    )
    add(
        "resize_with_pad_unknown_" + _name,
        lambda tf, h=_height, w=_width: tf.image.resize_image_with_pad(
            fed(tf, 5, 4, 2, known=[None, None, 2]), h, w
        ),
    )
add("crop", lambda tf: tf.image.crop_to_bounding_box(image(5, 4, 1), 1, 1, 2, 3))
add("crop_batch", lambda tf: tf.image.crop_to_bounding_box(image(2, 5, 4, 1), 1, 1, 2, 3))
add("crop_unknown", lambda tf: tf.image.crop_to_bounding_box(fed(tf, 5, 4, 1), 1, 1, 2, 3))
add("crop_at_tensor", lambda tf: tf.image.crop_to_bounding_box(image(5, 4, 1), tf.constant(1) + 1, 1, 2, 3))
add("crop_beyond", lambda tf: tf.image.crop_to_bounding_box(image(5, 4, 1), 4, 1, 2, 3))
add("crop_before", lambda tf: tf.image.crop_to_bounding_box(image(5, 4, 1), -1, 1, 2, 3))
add("crop_nothing", lambda tf: tf.image.crop_to_bounding_box(image(5, 4, 1), 0, 1, 0, 3))
add("crop_matrix", lambda tf: tf.image.crop_to_bounding_box(image(5, 4), 0, 0, 1, 1))
add("crop_unknown_beyond", lambda tf: tf.image.crop_to_bounding_box(fed(tf, 5, 4, 1), 4, 1, 2, 3))
add("pad", lambda tf: tf.image.pad_to_bounding_box(image(5, 4, 1), 1, 2, 7, 8))
add("pad_batch", lambda tf: tf.image.pad_to_bounding_box(image(2, 5, 4, 1), 0, 0, 5, 8))
add("pad_unknown", lambda tf: tf.image.pad_to_bounding_box(fed(tf, 5, 4, 1), 1, 2, 7, 8))
add("pad_too_small", lambda tf: tf.image.pad_to_bounding_box(image(5, 4, 1), 1, 2, 5, 8))
add("pad_negative", lambda tf: tf.image.pad_to_bounding_box(image(5, 4, 1), -1, 2, 5, 8))
add("pad_unknown_too_small", lambda tf: tf.image.pad_to_bounding_box(fed(tf, 5, 4, 1), 1, 2, 5, 8))
for _fraction in (0.1, 0.5, 0.7, 1.0):
    for _shape in ((7, 10, 1), (2, 6, 5, 1)):
        add(
            f"central_crop_{_fraction}_{len(_shape)}d",
            lambda tf, s=_shape, f=_fraction: tf.image.central_crop(image(*s), f),
        )
add("central_crop_unknown", lambda tf: tf.image.central_crop(fed(tf, 7, 10, 1, known=[None, 10, 1]), 0.4))
add("central_crop_no_rank", lambda tf: tf.image.central_crop(fed(tf, 7, 10, 1), 0.4))
add("central_crop_too_much", lambda tf: tf.image.central_crop(image(7, 10, 1), 1.4))
add("central_crop_matrix", lambda tf: tf.image.central_crop(image(7, 10), 0.4))

# ---- turned

for _name in ("flip_left_right", "flip_up_down", "transpose_image", "rot90"):
    for _shape in ((5, 4, 2), (3, 5, 4, 2)):
        add(f"{_name}_{len(_shape)}d", lambda tf, n=_name, s=_shape: getattr(tf.image, n)(image(*s)))
    add(_name + "_unknown", lambda tf, n=_name: getattr(tf.image, n)(fed(tf, 5, 4, 2, known=[None, None, 2])))
    add(_name + "_matrix", lambda tf, n=_name: getattr(tf.image, n)(image(5, 4)))
    add(_name + "_nothing", lambda tf, n=_name: getattr(tf.image, n)(image(5, 0, 2)))
for _turns in (-1, 0, 2, 3, 6):
    add(f"rot90_{_turns}_times", lambda tf, k=_turns: tf.image.rot90(image(5, 4, 2), k))
    add(
        f"rot90_fed_{_turns}_times",
        lambda tf, k=_turns: tf.image.rot90(image(2, 5, 4, 2), tf.placeholder_with_default(k, [])),
    )

# ---- colours

TYPES = ("uint8", "int16", "int32", "float32", "float16", "float64")
for _source in TYPES:
    for _target in TYPES:
        add(
            f"convert_{_source}_{_target}",
            lambda tf, s=_source, t=_target: tf.image.convert_image_dtype(
                image(3, 4, dtype=s), getattr(tf, t)
            ),
        )
add(
    "convert_saturated", lambda tf: tf.image.convert_image_dtype(image(3, 4) * 3 - 1, tf.uint8, saturate=True)
)
add("convert_wider", lambda tf: tf.image.convert_image_dtype(image(3, 4, dtype="int16"), tf.int32, True))
for _dtype in ("uint8", "float32", "float16"):
    for _name, _argument in (
        ("adjust_brightness", 0.3),
        ("adjust_contrast", 1.7),
        ("adjust_hue", 0.3),
        ("adjust_saturation", 1.4),
    ):
        if _dtype != "float16" or _name == "adjust_brightness":
            add(
                f"{_name}_{_dtype}",
                lambda tf, n=_name, a=_argument, d=_dtype: getattr(tf.image, n)(image(4, 5, 3, dtype=d), a),
            )
    add(
        f"adjust_gamma_{_dtype}",
        lambda tf, d=_dtype: tf.image.adjust_gamma(image(4, 5, 3, dtype=d), 0.4, gain=1.2),
    )
add("gamma_of_tensor", lambda tf: tf.image.adjust_gamma(image(4, 5, 1), tf.constant(0.4)))
add("negative_gamma", lambda tf: tf.image.adjust_gamma(image(4, 5, 1), -0.4))
add("negative_gamma_of_tensor", lambda tf: tf.image.adjust_gamma(image(4, 5, 1), tf.constant(-0.4)))
for _name, _arguments in (
    ("random_brightness", [(-0.5,)]),
    ("random_contrast", [(0.5, 0.3), (-0.5, 0.3)]),
    ("random_saturation", [(0.5, 0.5), (-0.5, 0.3)]),
    ("random_hue", [(-0.5,), (0.6,)]),
):
    for _number, _given in enumerate(_arguments):
        add(
            f"{_name}_wrong_{_number}",
            lambda tf, n=_name, a=_given: getattr(tf.image, n)(image(4, 5, 3), *a),
        )
add("standardization", lambda tf: tf.image.per_image_standardization(image(4, 5, 3)))
add("standardization_batch", lambda tf: tf.image.per_image_standardization(image(2, 4, 5, 3)))
add(
    "standardization_of_one_colour",
    lambda tf: tf.image.per_image_standardization(np.ones([4, 5, 3], np.float32)),
)
add(
    "standardization_unknown",
    lambda tf: tf.image.per_image_standardization(fed(tf, 4, 5, 3, known=[None, 5, 3])),
)
add("standardization_matrix", lambda tf: tf.image.per_image_standardization(image(4, 5)))
for _dtype in ("uint8", "float32"):
    add("to_grey_" + _dtype, lambda tf, d=_dtype: tf.image.rgb_to_grayscale(image(4, 5, 3, dtype=d)))
    add(
        "from_grey_" + _dtype,
        lambda tf, d=_dtype: tf.image.grayscale_to_rgb(tf.constant(image(4, 5, 1, dtype=d))),
    )
add("from_grey_unknown", lambda tf: tf.image.grayscale_to_rgb(fed(tf, 4, 5, 1)))
add("from_grey_of_three", lambda tf: tf.image.grayscale_to_rgb(tf.constant(image(4, 5, 3))))
for _name in ("rgb_to_hsv", "hsv_to_rgb", "rgb_to_yiq", "yiq_to_rgb", "rgb_to_yuv", "yuv_to_rgb"):
    add(_name, lambda tf, n=_name: getattr(tf.image, n)(image(2, 4, 5, 3)))
    add(_name + "_double", lambda tf, n=_name: getattr(tf.image, n)(image(4, 5, 3, dtype="float64")))

# ---- compared


def pair(tf, *shape, dtype="float32"):
    """Two images that are alike."""
    first, second = image(*shape, dtype=dtype), image(*shape, dtype=dtype, key="other")
    return tf.constant(first), tf.constant((first * 0.8 + second * 0.2).astype(dtype))


add("total_variation", lambda tf: tf.image.total_variation(tf.constant(image(4, 5, 3))))
add("total_variation_batch", lambda tf: tf.image.total_variation(tf.constant(image(2, 4, 5, 3))))
add("total_variation_matrix", lambda tf: tf.image.total_variation(tf.constant(image(4, 5))))
add("gradients", lambda tf: list(tf.image.image_gradients(tf.constant(image(2, 4, 5, 3)))))
add("gradients_of_one", lambda tf: list(tf.image.image_gradients(tf.constant(image(4, 5, 3)))))
add("sobel", lambda tf: tf.image.sobel_edges(tf.constant(image(2, 4, 5, 3))))
add("psnr", lambda tf: tf.image.psnr(*pair(tf, 2, 4, 5, 3), max_val=1.0))
add("psnr_one", lambda tf: tf.image.psnr(*pair(tf, 4, 5, 3), max_val=1.0))
add("psnr_bytes", lambda tf: tf.image.psnr(*pair(tf, 2, 4, 5, 3, dtype="uint8"), max_val=255))
add("psnr_sizes", lambda tf: tf.image.psnr(image(4, 5, 3), image(4, 6, 3), 1.0))
add("ssim", lambda tf: tf.image.ssim(*pair(tf, 2, 15, 13, 3), max_val=1.0))
add("ssim_one", lambda tf: tf.image.ssim(*pair(tf, 11, 12, 1), max_val=1.0))
add("ssim_many", lambda tf: tf.image.ssim(*pair(tf, 2, 3, 11, 12, 1), max_val=1.0))
add("ssim_bytes", lambda tf: tf.image.ssim(*pair(tf, 2, 15, 13, 3, dtype="uint8"), max_val=255))
add(
    "ssim_window",
    lambda tf: tf.image.ssim(*pair(tf, 7, 8, 2), max_val=2.0, filter_size=5, filter_sigma=0.7, k1=0.1),
)
add("ssim_small", lambda tf: tf.image.ssim(*pair(tf, 7, 15, 3), max_val=1.0))
add("ssim_sizes", lambda tf: tf.image.ssim(tf.constant(image(14, 15, 3)), tf.constant(image(14, 16, 3)), 1.0))
add(
    "ssim_multiscale",
    lambda tf: tf.image.ssim_multiscale(
        *pair(tf, 2, 23, 30, 1), max_val=1.0, power_factors=(0.3, 0.4, 0.3), filter_size=5
    ),
)

# ---- boxes


def boxes(count=12):
    """Boxes within the image."""
    corners = image(count, 4, key="boxes")
    return np.concatenate(
        [np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1
    )


add("draw", lambda tf: tf.image.draw_bounding_boxes(image(1, 9, 9, 3), boxes()[None]))
add(
    "draw_red",
    lambda tf: tf.image.draw_bounding_boxes(image(1, 9, 9, 3), boxes()[None], None, [[1.0, 0.0, 0.0]]),
)
add("cut", lambda tf: tf.image.crop_and_resize(image(2, 6, 7, 2), boxes(2), [0, 1], [3, 3]))
add(
    "cut_nearest",
    lambda tf: tf.image.crop_and_resize(
        image(2, 6, 7, 2),
        boxes(2) * 2,
        box_indices=[0, 1],
        crop_size=[3, 3],
        method="nearest",
        extrapolation_value=3,
    ),
)
add("suppress", lambda tf: tf.image.non_max_suppression(boxes(), image(12), 5))
add("suppress_scored", lambda tf: tf.image.non_max_suppression(boxes(), image(12), 9, 0.3, 0.4))
add(
    "suppress_padded",
    lambda tf: list(tf.image.non_max_suppression_padded(boxes(), image(12), 9, 0.1, 0.4, True)),
)
add("suppress_with_scores", lambda tf: list(tf.image.non_max_suppression_with_scores(boxes(), image(12), 9)))
add(
    "suppress_overlaps",
    lambda tf: tf.image.non_max_suppression_overlaps(
        np.maximum(image(12, 12), np.eye(12, dtype="float32")), image(12), 9
    ),
)
add(
    "suppress_combined",
    lambda tf: list(tf.image.combined_non_max_suppression(boxes()[None, :, None], image(1, 12, 2), 3, 4)),
)
add(
    "patches",
    lambda tf: [
        tf.image.extract_image_patches(image(1, 4, 4, 1), [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
        tf.image.extract_patches(image(1, 4, 4, 1), [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
    ],
)
add("glimpse", lambda tf: tf.image.extract_glimpse(image(1, 6, 6, 1), [2, 2], [[0.2, -0.3]]))
add(
    "distorted",
    lambda tf: list(
        tf.image.sample_distorted_bounding_box(
            [4, 5, 3],
            np.zeros([1, 0, 4], "float32"),
            max_attempts=1,
            area_range=[1.0, 1.0],
            aspect_ratio_range=[1.25, 1.25],
            use_image_if_no_bounding_boxes=True,
        )
    ),
)

# Those whose nodes have TensorFlow 1.15's names and types.
NAMED = {
    "resize_images": lambda tf, x: tf.image.resize_images(x, [5, 6]),
    "resize_one": lambda tf, x: tf.image.resize_images(x[0], [5, 6], 1),
    "flip": lambda tf, x: tf.image.flip_left_right(x),
    "random_flip": lambda tf, x: tf.image.random_flip_left_right(x[0], seed=1),
    "random_flips": lambda tf, x: tf.image.random_flip_up_down(x, seed=1),
    "crop": lambda tf, x: tf.image.crop_to_bounding_box(x[0], 1, 1, 2, 3),
    "pad": lambda tf, x: tf.image.pad_to_bounding_box(x, 1, 1, 9, 9),
    "crop_or_pad": lambda tf, x: tf.image.resize_image_with_crop_or_pad(x[0], 3, 8),
    "central_crop": lambda tf, x: tf.image.central_crop(x, 0.5),
    "transpose": lambda tf, x: tf.image.transpose_image(x),
    "brightness": lambda tf, x: tf.image.adjust_brightness(x, 0.5),
    "random_brightness": lambda tf, x: tf.image.random_brightness(x, 0.5, seed=1),
    "contrast": lambda tf, x: tf.image.adjust_contrast(x, 0.5),
    "random_contrast": lambda tf, x: tf.image.random_contrast(x, 0.2, 1.8, seed=1),
    "gamma": lambda tf, x: tf.image.adjust_gamma(x, 0.5, 2),
    "hue": lambda tf, x: tf.image.adjust_hue(x, 0.5),
    "random_hue": lambda tf, x: tf.image.random_hue(x, 0.5, seed=1),
    "saturation": lambda tf, x: tf.image.adjust_saturation(x, 0.5),
    "random_saturation": lambda tf, x: tf.image.random_saturation(x, 0.5, 1.5, seed=1),
    "convert": lambda tf, x: tf.image.convert_image_dtype(x, tf.uint8),
    "hsv": lambda tf, x: tf.image.rgb_to_hsv(x),
    "total_variation": lambda tf, x: tf.image.total_variation(x),
    "suppress": lambda tf, x: tf.image.non_max_suppression(boxes(), image(12), 5),
    "cut": lambda tf, x: tf.image.crop_and_resize(x, boxes(2), [0, 1], [3, 3]),
    "draw": lambda tf, x: tf.image.draw_bounding_boxes(x, boxes(2)[None]),
    "glimpse": lambda tf, x: tf.image.extract_glimpse(x, [2, 2], image(2, 2)),
    "standardization": lambda tf, x: tf.image.per_image_standardization(x),
}


def outcome(tf, name):
    """What a program gives: ("error", class) or ("value", (static shape, dtype, value) of each tensor)."""
    with tf.Graph().as_default():
        try:
            result = PROGRAMS[name](tf)
            tensors = result if isinstance(result, list) else [result]
            with tf.Session() as session:
                values = session.run(tensors)
        except (ValueError, TypeError, tf.errors.OpError) as error:
            return "error", type(error).__name__
        shapes = [None if x.shape.ndims is None else x.shape.as_list() for x in tensors]
        found = [(s, x.dtype.name, np.asarray(v)) for s, x, v in zip(shapes, tensors, values)]
        return "value", found


def names(tf, name):
    """The nodes of a named program, "NAME TYPE" each, in the order of their names."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 5, 4, 3], name="x")
        NAMED[name](tf, x)
        return sorted(f"{each.name} {each.type}" for each in graph.get_operations())
