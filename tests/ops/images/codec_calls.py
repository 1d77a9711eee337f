"""What flowstone and TensorFlow are asked about files of images: `answers`.

An answer is a digest of the type, shape and values of what a call gives, or the class of its error.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

ACCURATE = {"dct_method": "INTEGER_ACCURATE"}  # the method of which flowstone has the values
WINDOWS = ([2, 3, 5, 6], [0, 0, 13, 18], [0, 0, 0, 3], [0, 0, 14, 3], [-1, 0, 3, 3], [0, 16, 2, 3])

PIXELS = (np.arange(11 * 7 * 4).reshape(11, 7, 4) ** 2 * 7 % 251).astype(np.uint8)
WRITTEN: dict[str, dict[str, Any]] = {  # options of JPEG files
    "usual": {}, "grey": {"format": "grayscale"}, "low": {"quality": 5, "chroma_downsampling": False},
    "progressive": {"progressive": True}, "small": {"optimize_size": True, "quality": 100},
    "described": {"density_unit": "cm", "x_density": 100, "y_density": 200, "xmp_metadata": "words"},
}  # fmt: skip


def calls(tf: Any, kind: str) -> dict[str, Any]:
    """The calls for a file of a kind ("png", "jpeg", "gif", "bmp" or another)."""
    image = tf.image
    found: dict[str, Any] = {
        "gif": image.decode_gif,
        "any": lambda data: image.decode_image(data, dtype=tf.uint8 if kind == "jpeg" else tf.uint16),
        "floats": lambda data: image.decode_image(data, dtype=tf.float32),
        "shape": image.extract_jpeg_shape,
        "is jpeg": image.is_jpeg,
        "jpeg 4": lambda data: image.decode_png(data, 4),
    }
    for channels in (0, 1, 3):
        found[f"jpeg {channels}"] = lambda data, c=channels: image.decode_jpeg(data, c, **ACCURATE)
    if kind == "png":
        for channels in (0, 1, 3, 4):
            found[f"png {channels}"] = lambda data, c=channels: image.decode_png(data, c)
            found[f"png {channels} wide"] = lambda data, c=channels: image.decode_png(data, c, tf.uint16)
    if kind == "webp":
        return {f"webp {c}": lambda data, c=c: image.decode_webp(data, c) for c in (0, 1, 3, 4)}
    if kind == "gif":
        found["first"] = lambda data: image.decode_image(data, expand_animations=False)
    if kind == "bmp":
        found["bmp"] = image.decode_bmp
    if kind == "jpeg":
        del found["any"], found["floats"]  # not with the accurate method
        del found["gif"]
        for ratio in (1, 2, 4, 8):
            for smooth in (True, False):
                found[f"{ratio} {smooth}"] = lambda data, r=ratio, s=smooth: image.decode_jpeg(
                    data, 3, ratio=r, fancy_upscaling=s, **ACCURATE
                )
        for window in WINDOWS:
            found[f"window {window}"] = lambda data, w=window: image.decode_and_crop_jpeg(
                data, w, 1, **ACCURATE
            )
    return found


def answers(tf: Any, files: Any) -> dict[str, dict[str, str]]:
    """The answers about all files, bytes by name, the first word of which is the kind."""
    found = {}
    for name, data in files.items():
        found[name] = {call: _answer(tf, make, data) for call, make in calls(tf, name.split()[0]).items()}
    return found


def _answer(tf: Any, make: Any, data: bytes) -> str:
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            value = np.asarray(session.run(make(data)))
        except tf.errors.OpError as error:
            return type(error).__name__
    text = f"{value.dtype} {'x'.join(map(str, value.shape))}"
    return f"{text} {hashlib.sha1(np.ascontiguousarray(value).tobytes()).hexdigest()[:10]}"


def written(tf: Any) -> dict[str, str]:
    """Digests of JPEG files of `PIXELS`."""
    found = {}
    for name, options in WRITTEN.items():
        with tf.Graph().as_default(), tf.Session() as session:
            pixels = PIXELS[..., :1] if name == "grey" else PIXELS[..., :3]
            file = session.run(tf.image.encode_jpeg(pixels, **options))
        found[name] = hashlib.sha1(file).hexdigest()[:10]
    return found
