"""The tutorials' MNIST reader, on small files made here and on the digits of the examples."""

from __future__ import annotations

import gzip
import io
import struct
from pathlib import Path

import numpy as np
import pytest

from flowstone.contrib.learn.datasets import mnist
from flowstone.framework.types import dtypes

DIGITS = Path(__file__).parents[4] / "examples" / "data" / "mnist"


def image_file(images: np.ndarray, magic: int = 2051) -> bytes:
    return gzip.compress(struct.pack(">4I", magic, *images.shape) + images.astype(np.uint8).tobytes())


def label_file(labels: list[int], magic: int = 2049) -> bytes:
    return gzip.compress(struct.pack(">2I", magic, len(labels)) + bytes(labels))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Ten training and four test images of 2 × 3; image i has the value i everywhere and the label i."""
    for images, labels, count in (
        (mnist.TRAIN_IMAGES, mnist.TRAIN_LABELS, 10),
        (mnist.TEST_IMAGES, mnist.TEST_LABELS, 4),
    ):
        pixels = np.broadcast_to(np.arange(count)[:, None, None], (count, 2, 3))
        (tmp_path / images).write_bytes(image_file(pixels))
        (tmp_path / labels).write_bytes(label_file(list(range(count))))
    return str(tmp_path)


def test_parts_and_scaling(folder: str) -> None:
    data = mnist.read_data_sets(folder, validation_size=3)
    assert [part.num_examples for part in data] == [7, 3, 4]
    assert data.train.images.shape == (7, 6)
    assert data.train.images.dtype == np.float32
    np.testing.assert_allclose(data.train.images[:, 0], np.arange(3, 10) / 255, rtol=1e-6)
    np.testing.assert_array_equal(data.validation.labels, [0, 1, 2])


def test_bytes_keep_their_shape_and_range(folder: str) -> None:
    data = mnist.read_data_sets(folder, dtype=dtypes.uint8, reshape=False, validation_size=0, one_hot=True)
    assert data.train.images.shape == (10, 2, 3, 1)
    assert data.train.images.dtype == np.uint8
    assert data.train.images[9].max() == 9
    np.testing.assert_array_equal(data.train.labels, np.eye(10))


@pytest.mark.parametrize("size", [-1, 11])
def test_validation_size_outside_the_training_examples(folder: str, size: int) -> None:
    with pytest.raises(ValueError, match=f"between 0 and 10. Received: {size}"):
        mnist.read_data_sets(folder, validation_size=size)


def test_a_missing_file_is_named(folder: str) -> None:
    (Path(folder) / mnist.TEST_LABELS).unlink()
    with pytest.raises(FileNotFoundError, match=mnist.TEST_LABELS):
        mnist.read_data_sets(folder, validation_size=0)


def test_batches_deal_out_each_example_once_an_epoch(folder: str) -> None:
    train = mnist.read_data_sets(folder, validation_size=0, seed=1).train
    labels = np.concatenate([train.next_batch(4)[1] for _ in range(5)])
    assert train.epochs_completed == 1
    assert sorted(labels[:10]) == sorted(labels[10:]) == list(range(10))
    assert list(labels[:10]) != list(range(10))
    assert list(labels[:10]) != list(labels[10:])


def test_images_and_labels_stay_together(folder: str) -> None:
    train = mnist.read_data_sets(folder, validation_size=0, seed=1).train
    for _ in range(7):
        images, labels = train.next_batch(4)
        np.testing.assert_allclose(images[:, 0] * 255, labels, rtol=1e-6)


def test_without_shuffling_the_order_is_the_files(folder: str) -> None:
    train = mnist.read_data_sets(folder, validation_size=0).train
    labels = np.concatenate([train.next_batch(4, shuffle=False)[1] for _ in range(3)])
    np.testing.assert_array_equal(labels, [*range(10), 0, 1])


def test_equal_seeds_give_equal_batches(folder: str) -> None:
    first, second = (mnist.read_data_sets(folder, validation_size=0, seed=7).train for _ in range(2))
    for _ in range(4):
        np.testing.assert_array_equal(first.next_batch(3)[1], second.next_batch(3)[1])


def test_a_batch_larger_than_an_epoch_is_refused(folder: str) -> None:
    with pytest.raises(ValueError, match="larger than the 4 examples"):
        mnist.read_data_sets(folder, validation_size=0).test.next_batch(5)


def test_fake_data() -> None:
    data = mnist.read_data_sets("", fake_data=True, one_hot=True)
    images, labels = data.train.next_batch(2)
    assert data.train.num_examples == 10000
    assert np.shape(images) == (2, 784)
    assert labels == [[1] + [0] * 9] * 2


@pytest.mark.parametrize(
    ("read", "contents", "message"),
    [
        (mnist.extract_images, image_file(np.zeros((1, 2, 2)), magic=7), "Invalid magic number 7"),
        (mnist.extract_labels, label_file([1], magic=7), "Invalid magic number 7"),
        (mnist.extract_labels, gzip.compress(b"\0\0"), "ends within its header"),
        (
            mnist.extract_images,
            gzip.compress(struct.pack(">4I", 2051, 9, 2, 2) + bytes(8)),
            "cut short: 8 of 36",
        ),
    ],
    ids=["images' magic number", "labels' magic number", "no header", "cut short"],  # the files hold the time
)
def test_malformed_files(read: object, contents: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(io.BytesIO(contents))  # type: ignore[operator]


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.int32])
def test_other_dtypes_are_refused(folder: str, dtype: object) -> None:
    with pytest.raises(TypeError, match="expected uint8 or float32"):
        mnist.read_data_sets(folder, validation_size=0, dtype=dtype)


def test_the_digits_of_the_examples() -> None:
    data = mnist.read_data_sets(str(DIGITS), one_hot=True)
    assert [part.num_examples for part in data] == [3000, 5000, 2000]
    assert data.test.images.shape == (2000, 784)
    assert data.test.images.min() == 0
    assert data.test.images.max() == 1
    np.testing.assert_array_equal(data.test.labels.sum(axis=1), np.ones(2000))
