"""Calls of the functions of `tf.image` but for the codecs."""

from class_calls import ClassCalls

VALUES = """
x = tf.reshape(tf.cos(tf.range(24.0)) * 0.5 + 0.5, [2, 4, 3])
many = tf.stack([x, 1.0 - x])
whole = tf.cast(x * 255.0, tf.uint8)
even = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
boxes = tf.constant([[0.0, 0.0, 0.5, 0.75], [0.25, 0.25, 1.0, 1.0]])
def drawn(make):
    one, two = run(tf.stack([make(), make()]))
    return [one.dtype.name, list(one.shape), bool(np.isfinite(one).all()), bool((one == two).all())]
"""
COLOURS = {
    "adjust_brightness": "[tf.image.adjust_brightness(x, 0.25), tf.image.adjust_brightness(whole, -0.25)]",
    "adjust_contrast": "[tf.image.adjust_contrast(x, 2.0), tf.image.adjust_contrast(whole, 0.5)]",
    "adjust_gamma": "[tf.image.adjust_gamma(x, 2.0, 0.5), tf.image.adjust_gamma(x)]",
    "adjust_hue": "[tf.image.adjust_hue(x, 0.2, 'a'), tf.image.adjust_hue(whole, -0.4)]",
    "adjust_saturation": "[tf.image.adjust_saturation(x, 0.5, 'a'), tf.image.adjust_saturation(whole, 2.0)]",
    "convert_image_dtype": (
        "[tf.image.convert_image_dtype(x * 1.5, tf.uint8, True, 'a'), tf.image.convert_image_dtype(whole,"
        " tf.float32),"
        " tf.image.convert_image_dtype(whole, tf.int16), tf.image.convert_image_dtype(x, tf.float32) is x]"
    ),
    "grayscale_to_rgb": "tf.image.grayscale_to_rgb(x[:, :, :1], 'a')",
    "hsv_to_rgb": "tf.image.hsv_to_rgb(x, 'a')",
    "per_image_standardization": (
        "[tf.image.per_image_standardization(each) for each in [x, tf.ones_like(x)]]"
    ),
    "rgb_to_grayscale": "[tf.image.rgb_to_grayscale(x, 'a'), tf.image.rgb_to_grayscale(whole)]",
    "rgb_to_hsv": "tf.image.rgb_to_hsv(x, 'a')",
    "total_variation": "[tf.image.total_variation(many, 'a'), tf.image.total_variation(x)]",
}
SIZES = {
    "ResizeMethod": "sorted(name for name in vars(tf.image.ResizeMethod) if name.isupper())",
    "ResizeMethod.AREA": "tf.image.ResizeMethod.AREA",
    "ResizeMethod.BICUBIC": "tf.image.ResizeMethod.BICUBIC",
    "ResizeMethod.BILINEAR": "tf.image.ResizeMethod.BILINEAR",
    "ResizeMethod.NEAREST_NEIGHBOR": "tf.image.ResizeMethod.NEAREST_NEIGHBOR",
    "central_crop": "[tf.image.central_crop(x, 0.5), tf.image.central_crop(x, 1.0) is x]",
    "crop_and_resize": (
        "[tf.image.crop_and_resize(even, boxes, [0, 0], [2, 3], 'bilinear', 7.0, 'a'),"
        " tf.image.crop_and_resize(even, boxes * 1.5, box_ind=[0, 0], crop_size=[2, 2])]"
    ),
    "crop_to_bounding_box": "[tf.image.crop_to_bounding_box(each, 1, 1, 1, 2) for each in [x, many]]",
    "pad_to_bounding_box": "[tf.image.pad_to_bounding_box(each, 1, 0, 3, 5) for each in [x, many]]",
    "resize_area": "tf.image.resize_area(even, [3, 2], True, 'a')",
    "resize_bicubic": (
        "[tf.image.resize_bicubic(even, [3, 6], True, 'a'), tf.image.resize_bicubic(even, [2, 3])]"
    ),
    "resize_bilinear": (
        "[tf.image.resize_bilinear(even, [3, 6], True, 'a'), tf.image.resize_bilinear(even, [2, 3])]"
    ),
    "resize_image_with_crop_or_pad": (
        "[tf.image.resize_image_with_crop_or_pad(x, 4, 2), tf.image.resize_image_with_crop_or_pad(many,"
        " 1, 6)]"
    ),
    "resize_images": (
        "[tf.image.resize_images(x, [3, 5], 0, True)]"
        " + [tf.image.resize_images(even, [2, 3], method=each) for each in [1, 2, 3]]"
    ),
    "resize_nearest_neighbor": (
        "[tf.image.resize_nearest_neighbor(even, [3, 6], True, 'a'),"
        " tf.image.resize_nearest_neighbor(even, [2, 3])]"
    ),
}
PLACES = {
    "draw_bounding_boxes": "tf.image.draw_bounding_boxes(many, [boxes, boxes[::-1]], 'a')",
    "extract_glimpse": (
        "[tf.image.extract_glimpse(even, [2, 2], [[0.5, -0.5]], True, True, False, 'a'),"
        " tf.image.extract_glimpse(even, [3, 3], [[1.0, 2.0]], centered=False, normalized=False)]"
    ),
    "flip_left_right": "[tf.image.flip_left_right(x), tf.image.flip_left_right(many).shape]",
    "flip_up_down": "[tf.image.flip_up_down(x), tf.image.flip_up_down(many).shape]",
    "non_max_suppression": (
        "[tf.image.non_max_suppression([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]], [0.6, 0.9, 0.7],"
        " 3, each, name='a')"
        " for each in [0.5, 0.9]]"
    ),
    "rot90": "[tf.image.rot90(x, 3, 'a'), tf.image.rot90(x), tf.image.rot90(x, tf.constant(2))]",
    "transpose_image": "[tf.image.transpose_image(x), tf.image.transpose_image(many).shape]",
}
DRAWS = {
    "random_brightness": "drawn(lambda: tf.image.random_brightness(x, 0.5, 3))",
    "random_contrast": "drawn(lambda: tf.image.random_contrast(x, 0.5, 2.0, 3))",
    "random_flip_left_right": (
        "[drawn(lambda: tf.image.random_flip_left_right(x, 3)),"
        " tf.reduce_sum(tf.image.random_flip_left_right(x, seed=4), 1)]"
    ),
    "random_flip_up_down": (
        "[drawn(lambda: tf.image.random_flip_up_down(x, 3)),"
        " tf.reduce_sum(tf.image.random_flip_up_down(x, seed=4), 0)]"
    ),
    "random_hue": (
        "[drawn(lambda: tf.image.random_hue(x, 0.5, 3)), tf.reduce_max(tf.image.random_hue(x, 0.5), -1)]"
    ),
    "random_saturation": (
        "[drawn(lambda: tf.image.random_saturation(x, 0.5, 2.0, 3)),"
        " tf.reduce_max(tf.image.random_saturation(x, 0.5, 2.0), -1)]"
    ),
    "sample_distorted_bounding_box": (
        "[[begin.dtype, size.shape, box.shape, begin[2], size[2],"
        " tf.reduce_all(begin[:2] + size[:2] <= [40, 60])]"
        " for begin, size, box in [tf.image.sample_distorted_bounding_box("
        "[40, 60, 3], [boxes], 3, 4, 0.5, [0.75, 1.33], [0.25, 1.0], 20, True, 'a')]]"
    ),
}
TABLES = [ClassCalls("tf.image", VALUES, {**COLOURS, **SIZES, **PLACES, **DRAWS})]
