"""Decoders of `tf.train.Example` messages, item by item.

Each item has a handler, which says which features of the message it needs (`keys`) and makes a tensor of them
(`tensors_to_item`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.slim.data_decoder import DataDecoder
from flowstone.contrib.slim.image_handler import Image as Image
from flowstone.contrib.slim.item_handler import ItemHandler as ItemHandler
from flowstone.contrib.slim.item_handler import dense

__all__ = [
    "BackupHandler",
    "BoundingBox",
    "Image",
    "ItemHandler",
    "ItemHandlerCallback",
    "LookupTensor",
    "SparseTensor",
    "TFExampleDecoder",
    "Tensor",
]

Features = Mapping[str, Any]


class ItemHandlerCallback(ItemHandler):
    """An item that a function makes: ``func(keys_to_tensors)`` of the features `keys`."""

    def __init__(self, keys: Any, func: Callable[[Features], Any]) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        """The function's result."""
        return self._func(keys_to_tensors)


class BoundingBox(ItemHandler):
    """Boxes [boxes, 4] of the features of their sides.

    `keys`: the names of four features [boxes], in the order of the columns; ymin, xmin, ymax, xmax if None.
    `prefix`: what comes before each. Raises ValueError unless there are four.
    """

    def __init__(self, keys: Sequence[str] | None = None, prefix: str | None = "") -> None:
        keys = ["ymin", "xmin", "ymax", "xmax"] if keys is None else keys
        if len(keys) != 4:
            raise ValueError(f"BoundingBox expects 4 keys but got {len(keys)}")
        self._full_keys = [(prefix or "") + key for key in keys]
        super().__init__(self._full_keys)

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        """The boxes, float32 [boxes, 4]."""
        sides = []
        for key in self._full_keys:
            side = keys_to_tensors[key]
            side = side.values if isinstance(side, tf.SparseTensor) else side
            sides.append(tf.expand_dims(tf.reshape(side, [-1]), 0))
        return tf.transpose(tf.concat(sides, 0))


class Tensor(ItemHandler):
    """A feature, in another shape if one is given.

    Args:
        tensor_key: the feature.
        shape_keys: a feature, or several of one number each, that have the shape.
        shape: the shape.
        default_value: what fills up a sparse feature.

    Raises ValueError if both `shape_keys` and `shape` are given.
    """

    def __init__(
        self, tensor_key: str, shape_keys: Any = None, shape: Any = None, default_value: Any = 0
    ) -> None:
        if shape_keys and shape is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters.")
        shape_keys = [shape_keys] if isinstance(shape_keys, str) else list(shape_keys or [])
        self._tensor_key, self._shape_keys = tensor_key, shape_keys
        self._shape, self._default_value = shape, default_value
        super().__init__([tensor_key, *shape_keys])

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        """The feature, dense."""
        tensor, shape = keys_to_tensors[self._tensor_key], self._shape
        if self._shape_keys:
            sizes = [tf.reshape(dense(keys_to_tensors[key]), [-1]) for key in self._shape_keys]
            shape = tf.cast(tf.concat(sizes, 0), tf.int64)
        if isinstance(tensor, tf.SparseTensor):
            if shape is not None:
                tensor = tf.sparse_reshape(tensor, shape)
            return tf.sparse_tensor_to_dense(tensor, self._default_value)
        return tensor if shape is None else tf.reshape(tensor, shape)


class LookupTensor(Tensor):
    """A feature whose values are keys of a lookup table; the item has the table's values.

    The arguments beside `table` are those of `Tensor`.
    """

    def __init__(
        self,
        tensor_key: str,
        table: Any,
        shape_keys: Any = None,
        shape: Any = None,
        default_value: Any = "",
    ) -> None:
        self._table = table
        super().__init__(tensor_key, shape_keys, shape, default_value)

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        """What the table has for the feature."""
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class BackupHandler(ItemHandler):
    """What `handler` makes or, if that has no values, what `backup` makes.

    Raises ValueError unless both are handlers.
    """

    def __init__(self, handler: ItemHandler, backup: ItemHandler) -> None:
        for each, role in ((handler, "Primary"), (backup, "Backup")):
            if not isinstance(each, ItemHandler):
                raise ValueError(f"{role} handler is of type {type(each)} instead of ItemHandler")
        self._handler, self._backup = handler, backup
        super().__init__([*handler.keys, *backup.keys])

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        """The item."""
        item = self._handler.tensors_to_item(keys_to_tensors)
        return tf.cond(
            tf.equal(tf.reduce_prod(tf.shape(item)), 0),
            lambda: self._backup.tensors_to_item(keys_to_tensors),
            lambda: item,
        )


class SparseTensor(ItemHandler):
    """A sparse vector of one feature with its indices and one with its values.

    Args:
        indices_key, values_key: the two features, sparse; ``indices`` and ``values`` if None.
        shape_key: the feature with the dense shape.
        shape: the dense shape. Without both, that of the feature of the values.
        densify: whether the item is dense.
        default_value: what fills it up then.
    """

    def __init__(
        self,
        indices_key: str | None = None,
        values_key: str | None = None,
        shape_key: str | None = None,
        shape: Any = None,
        densify: bool = False,
        default_value: Any = 0,
    ) -> None:
        self._indices_key, self._values_key = indices_key or "indices", values_key or "values"
        self._shape_key, self._shape = shape_key, shape
        self._densify, self._default_value = densify, default_value
        keys = [self._indices_key, self._values_key]
        super().__init__([*keys, shape_key] if shape_key else keys)

    def tensors_to_item(self, keys_to_tensors: Features) -> Any:
        """The vector, sparse or dense."""
        indices, values = keys_to_tensors[self._indices_key], keys_to_tensors[self._values_key]
        shape: Any = values.dense_shape
        if self._shape_key:
            shape = keys_to_tensors[self._shape_key]
            shape = shape.values if isinstance(shape, tf.SparseTensor) else shape
        elif self._shape is not None:
            shape = self._shape
        columns = tf.expand_dims(tf.sparse_tensor_to_dense(indices), -1)
        item = tf.SparseTensor(tf.cast(columns, tf.int64), values.values, tf.cast(shape, tf.int64))
        return tf.sparse_tensor_to_dense(item, self._default_value) if self._densify else item


class TFExampleDecoder(DataDecoder):
    """Makes items from serialised `tf.train.Example` messages.

    `keys_to_features`: what `tf.parse_single_example` is given; `items_to_handlers`: an `ItemHandler` for
    each item.
    """

    def __init__(self, keys_to_features: Features, items_to_handlers: Mapping[str, Any]) -> None:
        self._keys_to_features = keys_to_features
        self._items_to_handlers = items_to_handlers

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items_to_handlers)

    def decode(self, serialized_example: Any, items: Sequence[str] | None = None) -> list[Any]:
        """The items (None: all) of a message, a string scalar. KeyError for an item without a handler."""
        example = tf.parse_single_example(serialized_example, self._keys_to_features)
        for key, feature in sorted(self._keys_to_features.items()):
            if isinstance(feature, tf.FixedLenFeature):
                example[key] = tf.reshape(example[key], feature.shape)
        outputs = []
        for item in self._items_to_handlers if items is None else items:
            handler = self._items_to_handlers[item]
            outputs.append(handler.tensors_to_item({key: example[key] for key in handler.keys}))
        return outputs
