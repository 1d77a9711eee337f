"""The next string of a list, whose place is a variable that workers share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import flowstone as tf

__all__ = ["obtain_next", "seek_next"]

_NAME = "obtain_next"


def obtain_next(string_list_tensor: Any, counter: Any) -> Any:
    """The next string of a list, a scalar; after the last one comes the first.

    Args:
        string_list_tensor: strings [n].
        counter: a variable, int64, -1 at first; each step adds 1 to it, and steps at the same time get
            different numbers. (TensorFlow begins again at 0 after n - 1.)

    Raises TypeError for a list of anything else.
    """
    strings = tf.convert_to_tensor(string_list_tensor)
    if strings.dtype.base_dtype != tf.string:
        raise TypeError(
            f"Input 'list' of 'ObtainNext' Op has type {strings.dtype.base_dtype.name} that does not match "
            "expected type of string."
        )
    with tf.name_scope("ObtainNext"):
        place = tf.assign_add(counter, tf.constant(1, tf.int64), use_locking=True)
        return tf.gather(strings, tf.floormod(place, tf.size(strings, out_type=tf.int64)))


def seek_next(
    string_list: Sequence[str], shuffle: bool = False, seed: int | None = None, num_epochs: int | None = None
) -> Any:
    """The next of these strings, a scalar; all of them `num_epochs` times, then OutOfRangeError.

    Args:
        string_list: the strings; shuffle: whether their order is drawn once, with `seed`.
        num_epochs: None: without end.

    Variables, which checkpoints keep: ``obtain_next/obtain_next_counter``, ``…_expanded_list`` and, with
    epochs, ``…_filename_counter``.
    """
    strings = list(string_list)
    expanded = strings * (num_epochs or 1)
    if shuffle:
        random.Random(seed).shuffle(expanded)
    with tf.variable_scope(_NAME):
        counter = tf.get_variable(
            f"{_NAME}_counter",
            initializer=tf.constant(-1, tf.int64),
            dtype=tf.int64,
            trainable=False,
        )
        values = tf.get_variable(
            f"{_NAME}_expanded_list", initializer=tf.constant(expanded), dtype=tf.string, trainable=False
        )
        if not num_epochs:
            return obtain_next(values, counter)
        taken = tf.get_variable(
            f"{_NAME}_filename_counter",
            initializer=tf.zeros([], tf.int64),
            dtype=tf.int64,
            trainable=False,
        )
        with tf.control_dependencies([tf.count_up_to(taken, len(expanded))]):
            return obtain_next(values, counter)
