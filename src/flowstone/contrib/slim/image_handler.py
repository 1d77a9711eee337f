"""The item handler of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.slim.item_handler import ItemHandler, dense

__all__ = ["Image"]


class Image(ItemHandler):
    """An image, decoded.

    Args:
        image_key: the feature with the encoded image, ``image/encoded`` if None.
        format_key: the feature with its format, ``image/format`` if None: ``raw`` is the pixels' bytes; of
            other formats it does not matter, for the bytes tell.
        shape: [height, width, channels], which a raw image needs.
        channels: how many, 0 for as many as the image has.
        dtype: of the pixels.
        repeated: whether there are several images, which become [images, height, width, channels].
        dct_method: how JPEG is decoded, as of `tf.image.decode_jpeg`.
    """

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: Sequence[int] | None = None,
        channels: int = 3,
        dtype: Any = tf.uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        self._image_key, self._format_key = image_key or "image/encoded", format_key or "image/format"
        super().__init__([self._image_key, self._format_key])
        self._shape, self._channels, self._dtype = shape, channels, dtype
        self._repeated, self._dct_method = repeated, dct_method

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The image [height, width, channels], or images."""
        encoded, image_format = keys_to_tensors[self._image_key], keys_to_tensors[self._format_key]
        if self._repeated:
            return tf.map_fn(lambda each: self._decode(each, image_format), dense(encoded), dtype=self._dtype)
        return self._decode(encoded, image_format)

    def _decode(self, encoded: Any, image_format: Any) -> Any:
        raw = tf.logical_or(tf.equal(image_format, "raw"), tf.equal(image_format, "RAW"))
        image = tf.case(
            {raw: lambda: tf.decode_raw(encoded, out_type=self._dtype)},
            default=lambda: self._decode_encoded(encoded),
            exclusive=True,
        )
        image.set_shape([None, None, self._channels or None])
        return image if self._shape is None else tf.reshape(image, self._shape)

    def _decode_encoded(self, encoded: Any) -> Any:
        def any_format() -> Any:
            return tf.image.decode_image(encoded, self._channels, dtype=self._dtype)

        def jpeg() -> Any:
            return tf.cast(
                tf.image.decode_jpeg(encoded, self._channels, dct_method=self._dct_method), self._dtype
            )

        if not self._dct_method:
            return any_format()
        return tf.cond(tf.image.is_jpeg(encoded), jpeg, any_format)
