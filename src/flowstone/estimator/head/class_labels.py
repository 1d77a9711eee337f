"""Labels of classes as numbers or as texts of a vocabulary."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.ops.lookup.vocabularies import index_table_from_tensor, index_to_string_table_from_tensor

__all__ = ["all_class_ids", "all_classes", "checked_vocabulary", "class_texts", "label_ids", "score_classes"]


def checked_vocabulary(vocabulary: Any, n_classes: int) -> Any:
    """The vocabulary, a list or tuple as long as there are classes, or None; ValueError otherwise."""
    if vocabulary is not None and not isinstance(vocabulary, (list, tuple)):
        raise ValueError(f"label_vocabulary should be a list or a tuple. Given type: {type(vocabulary)}")
    if vocabulary and len(vocabulary) != n_classes:
        raise ValueError(
            f"Length of label_vocabulary must be n_classes ({n_classes}). Given: {len(vocabulary)}"
        )
    return vocabulary


def label_ids(labels: Any, vocabulary: Any) -> Any:
    """The numbers of labels: texts are looked up. ValueError for labels of another type."""
    if vocabulary is None:
        if not labels.dtype.is_integer:
            raise ValueError(
                f"Labels dtype should be integer. Instead got {labels.dtype}. Either pass integer Tensor as "
                "label "
                "or provide label_vocabulary."
            )
        return labels
    if labels.dtype != tf.string:
        raise ValueError(
            f"Labels dtype should be string if there is a vocabulary. Instead got {labels.dtype}"
        )
    return index_table_from_tensor(tuple(vocabulary), name="class_id_lookup").lookup(labels)


def class_texts(class_ids: Any, vocabulary: Any) -> Any:
    """The texts of class numbers: their decimals without a vocabulary."""
    if vocabulary is None:
        return tf.as_string(class_ids, name="str_classes")
    table = index_to_string_table_from_tensor(vocabulary, name="class_string_lookup")
    return table.lookup(tf.to_int64(class_ids))


def all_class_ids(logits: Any, n_classes: int) -> Any:
    """The numbers of all classes, for each example."""
    ids = tf.expand_dims(tf.range(n_classes), 0)
    return tf.tile(ids, [tf.shape(logits)[0], 1])


def all_classes(logits: Any, n_classes: int, vocabulary: Any) -> Any:
    """The texts of all classes, for each example."""
    texts = tf.as_string(tf.range(n_classes)) if vocabulary is None else tf.constant(list(vocabulary))
    return tf.tile(tf.expand_dims(texts, 0), [tf.shape(logits)[0], 1])


def score_classes(scores: Any, n_classes: int, vocabulary: Any) -> Any:
    """A ClassificationOutput of scores with the texts of the classes."""
    return tf.estimator.export.ClassificationOutput(scores, all_classes(scores, n_classes, vocabulary))
