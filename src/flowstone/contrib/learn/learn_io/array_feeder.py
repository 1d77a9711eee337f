"""`DataFeeder`: arrays as inputs, batch by batch, and what feeders share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["DataFeeder", "batch_shape", "check_array", "each", "in_shape", "indicators", "named"]


def each(function: Callable[..., Any], values: Any, *others: Any) -> Any:
    """The function of a value, or of each value of a dict with what `others` have under its name."""
    if not isinstance(values, dict):
        return function(values, *others)
    return {
        name: function(value, *(of.get(name) if isinstance(of, dict) else of for of in others))
        for name, value in values.items()
    }


def check_array(array: Any, dtype: Any) -> Any:
    """The values as an array of this type, or of their own if None."""
    return np.asarray(array, dtype)


def batch_shape(one: tuple[int, ...], batch_size: Any, n_classes: Any, is_input: bool) -> list[Any]:
    """The shape of a batch of values, each of the shape `one`."""
    if is_input:
        return [batch_size, *(one or (1,))]
    if n_classes is not None and n_classes > 1:
        return [batch_size, *one, n_classes]
    return [batch_size, *one]


def indicators(labels: Any, n_classes: Any, dtype: Any) -> Any:
    """Labels as rows of 0 and 1, one column a class; labels of one class or of none in particular as they
    are, in the type of the placeholder."""
    if n_classes is None or n_classes <= 1:
        return labels if labels.dtype.kind in "OSU" else labels.astype(dtype, copy=False)
    found = np.zeros([*labels.shape, n_classes], dtype)
    np.put_along_axis(found, labels.astype(np.int64)[..., None], 1, -1)
    return found


class DataFeeder:
    """Feeds arrays batch by batch; the last batch of an epoch may be smaller.

    Args:
        x: an array [examples, ...], or a dict of them; anything that NumPy can make an array of.
        y: the labels, likewise, or None.
        n_classes: how many classes labels are of, a dict for a dict of labels; with more than one, labels are
            fed as rows of 0 and 1. None: labels are fed as they are; 1 or less: as float32.
        batch_size: how many examples a step takes; None: all.
        shuffle: whether each epoch has an order of its own.
        random_state: a `numpy.random.RandomState` for the order, by default the same in every process.
        epochs: how many epochs there are; None: no end.

    Raises ValueError for labels of another number than there are examples.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        n_classes: Any,
        batch_size: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        epochs: int | None = None,
    ) -> None:
        self._x = each(lambda value: check_array(value, None), x)
        self._y = (
            None if y is None else each(lambda value, of: self._checked_labels(value, of, y), y, n_classes)
        )
        self._count = len(next(iter(self._x.values())) if isinstance(self._x, dict) else self._x)
        self._check_counts()
        self.n_classes, self.max_epochs = n_classes, epochs
        self._batch_size = self._count if batch_size is None else batch_size
        self._shuffle = shuffle
        self.random_state = np.random.RandomState(42) if random_state is None else random_state
        self.indices = self._new_order()
        self.offset = self.epoch = 0
        self._set_types()

    def _check_counts(self) -> None:
        """ValueError unless there is a label for each example."""
        for values in (self._x, self._y):
            for array in values.values() if isinstance(values, dict) else [values]:
                if array is not None and len(array) != self._count:
                    raise ValueError(
                        f"x and y have other numbers of examples: {self._count} and {len(array)}"
                    )

    @staticmethod
    def _checked_labels(values: Any, n_classes: Any, y: Any) -> Any:
        """Labels as an array; classes that do not come by name as int64."""
        array = check_array(values, None)
        is_class = not isinstance(y, dict) and n_classes is not None and n_classes > 1
        return array.astype(np.int64) if is_class else array

    def _set_types(self) -> None:
        """Notes the shapes of batches and the types of placeholders."""
        size = self._batch_size
        self.input_shape = each(lambda value: batch_shape(value.shape[1:], size, None, True), self._x)
        self._input_dtype = each(lambda value: value.dtype, self._x)
        self.output_shape: Any = None
        self._output_dtype: Any = np.dtype(np.float32)
        if self._y is None:
            return
        self.output_shape = each(
            lambda value, classes: batch_shape(value.shape[1:], size, classes, False), self._y, self.n_classes
        )
        self._output_dtype = self._output_types()

    def _output_types(self) -> Any:
        """The types of labels: int64 for the classes of a single y, float32 for other labels of which
        `n_classes` says something, else their own."""
        if isinstance(self._y, dict):
            told = self.n_classes if isinstance(self.n_classes, dict) else {}
            single = np.dtype(np.float32)
            return {name: single if name in told else values.dtype for name, values in self._y.items()}
        if self.n_classes is None or self.n_classes > 1:
            return None if self._y is None else self._y.dtype
        return np.dtype(np.float32)

    def _new_order(self) -> Any:
        return self.random_state.permutation(self._count) if self._shuffle else np.arange(self._count)

    @property
    def x(self) -> Any:
        """The examples."""
        return self._x

    @property
    def y(self) -> Any:
        """The labels, or None."""
        return self._y

    @property
    def shuffle(self) -> bool:
        """Whether each epoch has an order of its own."""
        return self._shuffle

    @property
    def input_dtype(self) -> Any:
        """NumPy's type of the examples, or a dict of types."""
        return self._input_dtype

    @property
    def output_dtype(self) -> Any:
        """NumPy's type of the labels as they are fed, or a dict of types."""
        return self._output_dtype

    @property
    def batch_size(self) -> int:
        """How many examples a step takes."""
        return self._batch_size

    def make_epoch_variable(self) -> Any:
        """A placeholder [1], int32, that is fed with the number of the epoch."""
        self._epoch_placeholder = tf.placeholder(tf.int32, [1], name="epoch")
        return self._epoch_placeholder

    def input_builder(self) -> tuple[Any, Any]:
        """The placeholders of the examples, and of the labels or None."""
        self.set_placeholders(
            _placeholders(self.input_shape, self._input_dtype, "input"),
            None
            if self.output_shape is None
            else _placeholders(self.output_shape, self._output_dtype, "output"),
        )
        return self._input_placeholder, self._output_placeholder

    def set_placeholders(self, input_placeholder: Any, output_placeholder: Any) -> None:
        """Has feeds made for these placeholders; the second may be None."""
        self._input_placeholder, self._output_placeholder = input_placeholder, output_placeholder

    def get_feed_params(self) -> dict[str, Any]:
        """Where the feeder stands: epoch, offset in it, size of batches."""
        return {"epoch": self.epoch, "offset": self.offset, "batch_size": self._batch_size}

    def get_feed_dict_fn(self) -> Callable[[], dict[Any, Any]]:
        """A function that returns the feeds of the next step; StopIteration after the last epoch."""

        def feed_dict_fn() -> dict[Any, Any]:
            if self.max_epochs is not None and self.epoch + 1 > self.max_epochs:
                raise StopIteration
            end = min(self._count, self.offset + self._batch_size)
            feeds = self._feeds(self.indices[self.offset : end])
            self.offset = end
            if end >= self._count:
                self.indices = self._new_order()
                self.offset, self.epoch = 0, self.epoch + 1
            return feeds

        return feed_dict_fn

    def _feeds(self, indices: Any) -> dict[Any, Any]:
        """The feeds of these examples."""
        feeds: dict[Any, Any] = {}
        if getattr(self, "_epoch_placeholder", None) is not None:
            feeds[self._epoch_placeholder.name] = [self.epoch]
        taken = each(lambda values, shape: in_shape(values[indices], shape), self._x, self.input_shape)
        feeds.update(named(self._input_placeholder, taken))
        if self._output_placeholder is not None and self._y is not None:
            labels = each(
                lambda values, classes, dtype: indicators(values[indices], classes, dtype),
                self._y,
                self.n_classes,
                self._output_dtype,
            )
            feeds.update(named(self._output_placeholder, labels))
        return feeds


def in_shape(values: Any, shape: list[Any]) -> Any:
    """The values [batch, ...] in the shape of their placeholder."""
    return values.reshape([len(values), *shape[1:]])


def named(placeholders: Any, values: Any) -> dict[Any, Any]:
    """The values by the names of their placeholders."""
    if isinstance(placeholders, dict):
        return {placeholders[key].name: value for key, value in values.items()}
    return {placeholders.name: values}


def _placeholders(shapes: Any, dtypes: Any, name: str) -> Any:
    if isinstance(shapes, dict):
        return {key: _placeholders(shapes[key], dtypes[key], f"{name}_{key}") for key in shapes}
    dtype = tf.string if dtypes.kind in "OSU" else tf.as_dtype(dtypes)
    return tf.placeholder(dtype, [None, *shapes[1:]], name=name)
