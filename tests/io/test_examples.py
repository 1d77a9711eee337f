"""Arrays become the messages that protobuf writes, whatever the sizes of their rows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowstone as tf
from flowstone.io.examples import encode_examples

RANDOM = np.random.default_rng(0)


def by_protobuf(features: dict[str, Any], row: int) -> bytes:
    """The canonical form: features in the order of their names, lists packed."""
    example = tf.train.Example()
    for name, values in features.items():
        feature, values = example.features.feature[name], np.asarray(values[row]).reshape(-1)
        if values.dtype.kind in "iub":
            feature.int64_list.value.extend(int(each) for each in values)
        elif values.dtype.kind == "f" or values.dtype == ml_dtypes.bfloat16:
            feature.float_list.value.extend(values.astype(np.float32).tolist())
            feature.float_list.SetInParent()
        else:
            feature.bytes_list.value.extend(x if isinstance(x, bytes) else x.encode() for x in values)
    return example.SerializeToString(deterministic=True)


ROWS = 40
COLUMNS: dict[str, Any] = {
    "floats": RANDOM.standard_normal((ROWS, 5, 3)),
    "one float": RANDOM.standard_normal(ROWS).astype(np.float16),
    "brain floats": RANDOM.standard_normal((ROWS, 2)).astype(ml_dtypes.bfloat16),
    "no floats": np.zeros((ROWS, 0), np.float32),
    "small": RANDOM.integers(0, 9, ROWS),
    "large": RANDOM.integers(-(2**63), 2**63 - 1, (ROWS, 3), endpoint=True),
    "of every size": np.arange(ROWS, dtype=np.int64) ** 8,
    "unsigned": RANDOM.integers(0, 2**63, ROWS, np.uint64),
    "booleans": RANDOM.random((ROWS, 2)) < 0.5,
    "bytes": [bytes([i]) * i * 7 for i in range(ROWS)],
    "texts": np.array([["a", "\u00fc"]] * ROWS),
    "objects": np.array([[b"x", b""]] * ROWS, object),
}


@pytest.mark.parametrize("names", [[name] for name in COLUMNS] + [list(COLUMNS), ["floats", "small"]])
def test_messages_are_protobufs(names: list[str]) -> None:
    features = {name: COLUMNS[name] for name in names}
    for row, message in enumerate(encode_examples(features)):
        assert message == by_protobuf(features, row)


def test_messages_are_read_again() -> None:
    images, labels = RANDOM.random((300, 784), np.float32), RANDOM.integers(0, 1000, 300)
    messages = encode_examples({"image": images, "label": labels})
    features = {"image": tf.FixedLenFeature([784], tf.float32), "label": tf.FixedLenFeature([], tf.int64)}
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.parse_example(messages, features))
    np.testing.assert_array_equal(found["image"], images)
    np.testing.assert_array_equal(found["label"], labels)


def test_no_rows_and_no_features() -> None:
    assert encode_examples({}) == encode_examples({"a": np.zeros((0, 2))}) == encode_examples({"a": []}) == []


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ({"a": [1, 2], "b": [1]}, ValueError, r"same number of rows, but they have {'a': 2, 'b': 1}"),
        ({"a": 1}, ValueError, "Feature a must have a row for each Example"),
        ({"a": np.zeros(2, np.complex64)}, TypeError, "Feature a has values of type complex64"),
        ({"a": np.array([1, None], object)}, TypeError, "Feature a has the value 1, which no Example holds"),
        ({"a": np.array([2**63], np.uint64)}, tf.errors.InvalidArgumentError, "9223372036854775808"),
    ],
)
def test_what_no_example_holds(features: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        encode_examples(features)
