"""The MNIST reader of the TensorFlow 1 tutorials, `tensorflow.examples.tutorials.mnist.input_data`.

Reads the four classic idx files (gzip) of a folder into NumPy arrays and deals them out in shuffled batches.
Nothing is downloaded: a missing file is an error that says which file is wanted and where.

An idx file is a big-endian header and then bytes, `28 * 28` to an image or one to a label:

    images  int32 magic 2051, int32 count, int32 rows, int32 columns
    labels  int32 magic 2049, int32 count

The first `validation_size` training examples become the validation set, the others the training set.
"""

from __future__ import annotations

import gzip
import os
import struct
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flowstone.framework.types import dtypes

__all__ = [
    "DataSet",
    "Datasets",
    "dense_to_one_hot",
    "extract_images",
    "extract_labels",
    "load_mnist",
    "read_data_sets",
]

Array = npt.NDArray[Any]

DEFAULT_SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"

TRAIN_IMAGES = "train-images-idx3-ubyte.gz"
TRAIN_LABELS = "train-labels-idx1-ubyte.gz"
TEST_IMAGES = "t10k-images-idx3-ubyte.gz"
TEST_LABELS = "t10k-labels-idx1-ubyte.gz"

_IMAGES_MAGIC = 2051
_LABELS_MAGIC = 2049


def _read_header(stream: gzip.GzipFile, magic: int, words: int, kind: str) -> list[int]:
    """The `words` big-endian integers after the magic number. Raises ValueError where the file is not one."""
    header = stream.read(4 * (1 + words))
    name = getattr(stream, "name", "file")
    if len(header) != 4 * (1 + words):
        raise ValueError(f"MNIST {kind} file {name} ends within its header")
    found, *rest = struct.unpack(f">{1 + words}I", header)
    if found != magic:
        raise ValueError(f"Invalid magic number {found} in MNIST {kind} file: {name}")
    return rest


def _read_bytes(stream: gzip.GzipFile, count: int, kind: str) -> Array:
    data = np.frombuffer(stream.read(count), dtype=np.uint8)
    if data.size != count:
        name = getattr(stream, "name", "file")
        raise ValueError(f"MNIST {kind} file {name} is cut short: {data.size} of {count} bytes")
    return data


def extract_images(f: IO[bytes]) -> Array:
    """The images of an open idx3 gzip file, uint8 of shape [count, rows, columns, 1].

    Raises ValueError if the magic number is not 2051 or the file ends early.
    """
    with gzip.GzipFile(fileobj=f) as stream:
        count, rows, columns = _read_header(stream, _IMAGES_MAGIC, 3, "image")
        return _read_bytes(stream, count * rows * columns, "image").reshape(count, rows, columns, 1)


def extract_labels(f: IO[bytes], one_hot: bool = False, num_classes: int = 10) -> Array:
    """The labels of an open idx1 gzip file: uint8 [count], or float64 [count, num_classes] if `one_hot`.

    Raises ValueError if the magic number is not 2049 or the file ends early.
    """
    with gzip.GzipFile(fileobj=f) as stream:
        (count,) = _read_header(stream, _LABELS_MAGIC, 1, "label")
        labels = _read_bytes(stream, count, "label")
        return dense_to_one_hot(labels, num_classes) if one_hot else labels


def dense_to_one_hot(labels_dense: Array, num_classes: int) -> Array:
    """Labels [count] as float64 rows [count, num_classes] with a single 1."""
    one_hot = np.zeros((labels_dense.shape[0], num_classes))
    one_hot[np.arange(labels_dense.shape[0]), labels_dense.ravel()] = 1
    return one_hot


class DataSet:
    """Examples that are dealt out in batches, an epoch after another.

    Args:
      images: uint8 [count, rows, columns, 1].
      labels: [count] or [count, classes].
      fake_data: 10,000 examples of constant values instead, for tests of programs.
      one_hot: whether fake labels are rows of ten.
      dtype: float32 scales pixels to [0, 1]; uint8 leaves them in [0, 255].
      reshape: whether images become rows [count, rows * columns].
      seed: of the shuffling; None takes one from the operating system.

    Raises:
      TypeError: for another dtype.
      ValueError: where images and labels differ in number, or images to reshape have a depth other than 1.
    """

    def __init__(
        self,
        images: Array,
        labels: Array,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = dtypes.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        self._random = np.random.RandomState(seed)
        dtype = dtypes.as_dtype(dtype).base_dtype
        if dtype not in (dtypes.uint8, dtypes.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        self._fake_label: Any = [1] + [0] * 9 if one_hot else 0
        self._fake_data = fake_data
        self._num_examples = 10000 if fake_data else int(images.shape[0])
        if not fake_data:
            if images.shape[0] != labels.shape[0]:
                raise ValueError(f"images.shape: {images.shape} labels.shape: {labels.shape}")
            if reshape:
                if images.shape[3] != 1:
                    raise ValueError(f"Images of depth {images.shape[3]} cannot become rows of grey levels")
                images = images.reshape(images.shape[0], images.shape[1] * images.shape[2])
            if dtype == dtypes.float32:
                images = np.multiply(images, np.float32(1.0 / 255.0), dtype=np.float32)
        self._images = images
        self._labels = labels
        self._epochs_completed = 0
        self._index_in_epoch = 0

    @property
    def images(self) -> Array:
        """float32 or uint8, [count, pixels] or [count, rows, columns, 1], in the order of this epoch."""
        return self._images

    @property
    def labels(self) -> Array:
        """[count] or [count, classes], in the order of this epoch."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """How many examples an epoch has."""
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        """How often the end of the examples was passed."""
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """The next `batch_size` examples as (images, labels).

        A batch that passes the end of the epoch takes its beginning from this epoch and its end from the
        next, which is shuffled anew. Raises ValueError if the batch is larger than an epoch.
        """
        if fake_data or self._fake_data:
            return [[1] * 784] * batch_size, [self._fake_label] * batch_size
        if batch_size > self._num_examples:
            raise ValueError(f"A batch of {batch_size} is larger than the {self._num_examples} examples")
        start = self._index_in_epoch
        if start == 0 and self._epochs_completed == 0 and shuffle:
            self._shuffle()
        if start + batch_size <= self._num_examples:
            self._index_in_epoch = start + batch_size
            return self._images[start : start + batch_size], self._labels[start : start + batch_size]
        rest_images, rest_labels = self._images[start:], self._labels[start:]
        self._epochs_completed += 1
        if shuffle:
            self._shuffle()
        end = self._index_in_epoch = batch_size - len(rest_images)
        return (
            np.concatenate((rest_images, self._images[:end])),
            np.concatenate((rest_labels, self._labels[:end])),
        )

    def _shuffle(self) -> None:
        order = self._random.permutation(self._num_examples)
        self._images = self._images[order]
        self._labels = self._labels[order]


class Datasets(NamedTuple):
    """The three parts of MNIST."""

    train: DataSet
    validation: DataSet
    test: DataSet


def _open(folder: str, name: str) -> IO[bytes]:
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"No MNIST file {path}. Flowstone downloads nothing: put {TRAIN_IMAGES}, {TRAIN_LABELS}, "
            f"{TEST_IMAGES} and {TEST_LABELS} into {folder or 'that folder'!r}"
        )
    return open(path, "rb")


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = dtypes.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = DEFAULT_SOURCE_URL,
) -> Datasets:
    """Reads MNIST from the folder `train_dir`.

    Args:
      train_dir: the folder with the four idx gzip files.
      fake_data: constant examples instead of files.
      one_hot: labels as rows [count, 10] instead of classes [count].
      dtype: float32 scales pixels to [0, 1]; uint8 leaves them in [0, 255].
      reshape: images as rows [count, 784] instead of [count, 28, 28, 1].
      validation_size: how many of the first training examples become the validation set.
      seed: of the shuffling.
      source_url: accepted for old programs; nothing is downloaded.

    Raises:
      FileNotFoundError: if a file is missing.
      ValueError: if a file is malformed, or `validation_size` is not between 0 and the training examples.
    """
    if fake_data:
        nothing = np.empty((0, 28, 28, 1), np.uint8), np.empty((0,), np.uint8)
        return Datasets(*(DataSet(*nothing, True, one_hot, dtype, seed=seed) for _ in range(3)))
    with _open(train_dir, TRAIN_IMAGES) as f:
        train_images = extract_images(f)
    with _open(train_dir, TRAIN_LABELS) as f:
        train_labels = extract_labels(f, one_hot=one_hot)
    with _open(train_dir, TEST_IMAGES) as f:
        test_images = extract_images(f)
    with _open(train_dir, TEST_LABELS) as f:
        test_labels = extract_labels(f, one_hot=one_hot)
    if not 0 <= validation_size <= len(train_images):
        raise ValueError(
            f"Validation size should be between 0 and {len(train_images)}. Received: {validation_size}."
        )

    def part(images: Array, labels: Array) -> DataSet:
        return DataSet(images, labels, dtype=dtype, reshape=reshape, seed=seed)

    return Datasets(
        train=part(train_images[validation_size:], train_labels[validation_size:]),
        validation=part(train_images[:validation_size], train_labels[:validation_size]),
        test=part(test_images, test_labels),
    )


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """`read_data_sets` with its defaults, as `tf.contrib.learn.datasets.load_dataset('mnist')` calls it."""
    return read_data_sets(train_dir)
