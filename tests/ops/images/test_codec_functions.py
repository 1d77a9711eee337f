"""Images of files: TensorFlow's values and errors for every kind; what is written can be read; bad files."""

from __future__ import annotations

import contextlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import codec_calls
import flowstone as tf
from codec_calls import PIXELS

GOLDEN = Path(__file__).parents[2] / "golden" / "images"
ANSWERS = json.loads((GOLDEN / "codec_answers.json").read_text())
with np.load(GOLDEN / "codec_files.npz") as _arrays:
    FILES = {name: _arrays[name].tobytes() for name in _arrays.files}


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


@pytest.mark.parametrize("name", FILES)
def test_answers_are_tensorflows(name: str) -> None:
    assert codec_calls.answers(tf, {name: FILES[name]})[name] == ANSWERS[name]


def test_bmp_files_get_the_channels_that_are_asked_for(session: Any) -> None:
    grey, colours, clear = (FILES[f"bmp {each}"] for each in ("grey", "colours", "clear"))
    found = session.run(
        [tf.image.decode_bmp(grey), tf.image.decode_bmp(grey, 3), tf.image.decode_bmp(grey, 4)]
    )
    assert [each.shape[2] for each in found] == [1, 3, 4]
    assert (found[1] == found[0]).all() and (found[2][..., 3] == 255).all()
    assert session.run(tf.image.decode_image(clear, 3)).shape == (13, 18, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not match bits per pixel"):
        session.run(tf.image.decode_bmp(colours, 1))


# ---- writing


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("compression", [-1, 0, 9])
def test_png_files_hold_what_was_written(session: Any, channels: int, dtype: Any, compression: int) -> None:
    pixels = PIXELS[..., :channels].astype(dtype) * (201 if dtype is np.uint16 else 1)
    file = tf.image.encode_png(pixels, compression)
    kind = tf.as_dtype(dtype)
    np.testing.assert_array_equal(session.run(tf.image.decode_png(file, dtype=kind)), pixels)


def test_png_files_of_several_images(session: Any) -> None:
    files = session.run(tf.image.encode_png(np.stack([PIXELS, PIXELS[::-1]])[None]))
    assert files.shape == (1, 2)
    np.testing.assert_array_equal(session.run(tf.image.decode_png(files[0, 1])), PIXELS[::-1])


def test_jpeg_files_are_tensorflows_to_the_byte() -> None:
    assert codec_calls.written(tf) == ANSWERS["written"]


def test_quality_that_is_a_tensor(session: Any) -> None:
    quality = tf.placeholder(tf.int32, [])
    file = tf.raw_ops.EncodeJpegVariableQuality(images=PIXELS[..., :3], quality=quality)
    sizes = [len(session.run(file, {quality: each})) for each in (1, 50, 100)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[2]
    assert session.run(file, {quality: 95}) == session.run(tf.image.encode_jpeg(PIXELS[..., :3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="quality must be in"):
        session.run(file, {quality: 101})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: tf.image.encode_jpeg(x(2)), "must have 1 or 3 channels"),
        (lambda x: tf.image.encode_jpeg(x(3), format="grayscale"), "format grayscale expects 1 channels"),
        (lambda x: tf.image.encode_jpeg(x(3), quality=101), "quality must be in"),
        (lambda x: tf.image.encode_jpeg(x(3)[:0]), "1 to 65535 pixels"),
        (lambda x: tf.image.encode_jpeg(x(3)[0]), "must be 3-dimensional"),
        (lambda x: tf.image.encode_png(x(3)[..., :0]), "must have 1, 2, 3, or 4 channels"),
        (lambda x: tf.image.encode_png(x(3), compression=10), r"compression should be in \[-1,9\]"),
        (lambda x: tf.image.encode_png(x(3)[:0]), "must not be empty"),
    ],
)
def test_images_that_cannot_be_written(session: Any, make: Any, message: str) -> None:
    def unknown(channels: int) -> Any:
        return tf.placeholder_with_default(PIXELS[..., :channels], None)

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(make(unknown))


# ---- functions


def test_quality_of_an_image_is_lowered(session: Any) -> None:
    pixels = PIXELS[..., :3]
    file = session.run(tf.image.encode_jpeg(pixels, quality=30))
    expected = session.run(tf.image.decode_jpeg(file))
    lowered = tf.image.adjust_jpeg_quality(pixels, 30)
    assert lowered.shape.as_list() == [None, None, 3]
    np.testing.assert_array_equal(session.run(lowered), expected)
    floats = session.run(tf.image.adjust_jpeg_quality(pixels.astype(np.float32) / 255, 30))
    np.testing.assert_allclose(floats, expected / 255, atol=1e-6)
    tf.set_random_seed(1)
    random = tf.image.random_jpeg_quality(pixels, 1, 100, seed=2)
    assert len({session.run(random).tobytes() for _ in range(5)}) > 1
    with pytest.raises(ValueError, match="must be less than"):
        tf.image.random_jpeg_quality(pixels, 50, 50)
    with pytest.raises(ValueError, match="between 0 and 100"):
        tf.image.random_jpeg_quality(pixels, 5, 101)


def test_static_shapes() -> None:
    with tf.Graph().as_default():
        file = tf.placeholder(tf.string, [])
        image = tf.image
        assert image.decode_jpeg(file, 3).shape.as_list() == [None, None, 3]
        assert image.decode_png(file).shape.as_list() == [None, None, None]
        assert image.decode_gif(file).shape.as_list() == [None, None, None, 3]
        assert image.decode_and_crop_jpeg(file, [0, 0, 4, 5], 1).shape.as_list() == [4, 5, 1]
        assert image.extract_jpeg_shape(file, tf.int64).dtype is tf.int64
        assert image.decode_image(file).shape.ndims is None
        assert image.encode_png(tf.zeros([2, 3, 4, 5, 1], tf.uint8)).shape.as_list() == [2, 3]
        flat = tf.zeros([2, 2], tf.uint8)
        for wrong in (
            lambda: image.decode_png(["a", "b"]),
            lambda: image.decode_and_crop_jpeg(file, [1, 2, 3]),
            lambda: image.encode_jpeg(flat),
            lambda: image.encode_png(flat),
            lambda: image.decode_image(file, 2),
        ):
            with pytest.raises(ValueError, match=r"rank|Dimension|channels must be"):
                wrong()


# ---- bad files


def test_what_is_wrong_is_said(session: Any) -> None:
    image, png, gif = tf.image, FILES["png colours"], FILES["gif three"]
    for make, message in (
        (lambda: image.decode_png(""), "Input is empty"),
        (lambda: image.decode_png("abc"), "Unknown image file format.*abc"),
        (lambda: image.decode_jpeg(gif), "Got 3 frames"),
        (lambda: image.decode_bmp(png), "Trying to decode PNG format using DecodeBmp"),
        (lambda: image.decode_png(FILES["bmp grey"]), "use `decode_bmp`"),
        (lambda: image.decode_and_crop_jpeg(png, [0, 0, 1, 1]), "JPEG files only, but detected PNG"),
        (lambda: image.decode_jpeg(FILES["jpeg grey"], ratio=3), "ratio must be 1, 2, 4, or 8, got 3"),
        (lambda: image.decode_jpeg(FILES["jpeg grey"], dct_method="x"), "dct_method must be"),
        (lambda: image.decode_png(png, 2), "channels must be 0, 1, 3 or 4, got 2"),
        (lambda: image.decode_png(FILES["gif one"], dtype=tf.uint16), "does not support uint16"),
        (lambda: image.decode_image(FILES["tiff"]), "Unable to decode bytes"),
        (lambda: image.decode_png(tf.placeholder_with_default([png], None)), "must be scalar"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(make())
    assert session.run(image.decode_png(png)).shape == (13, 18, 3)


def test_files_that_end_early(session: Any) -> None:
    pixels = np.add.outer(np.arange(64) * 3, np.arange(120))[..., None].repeat(3, axis=2).astype(np.uint8) | 1
    cut = session.run(tf.image.encode_jpeg(pixels))
    cut = cut[: len(cut) * 3 // 4]
    whole = session.run(tf.image.decode_jpeg(cut, try_recover_truncated=True))
    part = session.run(tf.image.decode_jpeg(cut, acceptable_fraction=0.3))
    assert whole.shape == part.shape == (64, 120, 3)
    there = part.any(axis=(1, 2))
    np.testing.assert_array_equal(part[there], whole[there])
    assert not there[-1] and there.sum() >= 0.3 * 64
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Invalid JPEG data, size {len(cut)}"):
        session.run(tf.image.decode_jpeg(cut, acceptable_fraction=0.99))


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name]])
def test_damaged_files_give_an_image_or_an_error(session: Any, name: str) -> None:
    """Changed, cut and lengthened files: never a crash, a hang or an image larger than the file can hold."""
    random = np.random.default_rng(len(name))
    file = tf.placeholder(tf.string, [])
    image = tf.image
    decoded = [image.decode_gif(file), image.decode_png(file, 4), image.decode_image(file)]
    decoded += [
        image.decode_webp(file),
        image.extract_jpeg_shape(file),
        image.decode_jpeg(file, try_recover_truncated=True),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(40):
            data = bytearray(FILES[name])
            for _ in range(random.integers(1, 4)):
                at = int(random.integers(0, min(len(data), 64 if random.random() < 0.7 else len(data))))
                data[at] = int(random.integers(0, 256))
            if random.random() < 0.3:
                del data[int(random.integers(0, len(data))) :]
            for each in decoded:
                with contextlib.suppress(tf.errors.InvalidArgumentError):
                    assert session.run(each, {file: bytes(data)}).nbytes <= 1 << 27


def test_sizes_that_a_file_cannot_hold_are_refused(session: Any) -> None:
    png = bytearray(FILES["png colours"])
    png[16:24] = (60000).to_bytes(4, "big") * 2
    bmp = bytearray(FILES["bmp colours"])
    bmp[18:26] = (60000).to_bytes(4, "little") * 2
    gif = bytearray(FILES["gif one"])
    gif[6:10] = (60000).to_bytes(2, "little") * 2
    for data in (png, bmp, gif):
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot hold 60000 x 60000 pixels"):
            session.run(tf.image.decode_image(bytes(data)))
