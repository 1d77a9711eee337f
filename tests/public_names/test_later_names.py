"""The names that TensorFlow got after 1.4: each is there, refuses with a sentence, or has a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.names.refusals import NotInGraphModeError

GOLDEN = Path(__file__).parents[1] / "golden" / "public_names"
ROWS = [row.split() for row in (GOLDEN / "later_names.txt").read_text().splitlines()]
NAMES = [f"{owner}.{name}" for owner, *names in ROWS for name in names]
LEFT = {
    "a format of images that needs a decoder of its own": {"tf.image.decode_jxl", "tf.io.decode_jxl"},
    "a network's own boxes, which no kernel proposes": {"tf.image.generate_bounding_box_proposals"},
}
REFUSED = {
    "tf": "check_pinned ragged_fill_empty_rows"
    " ragged_fill_empty_rows_grad random_index_shuffle wrap_function",
    "tf.config": "experimental_connect_to_cluster experimental_connect_to_host"
    " experimental_run_functions_eagerly run_functions_eagerly",
    "tf.data": "NumpyIterator",
    "tf.debugging": "enable_check_numerics",
    "tf.dtypes.experimental": "float4_e2m1fn float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2"
    " float8_e5m2fnuz int2 int4 uint2 uint4",
    "tf.io": "RaggedFeature decode_proto encode_proto",
    "tf.saved_model": "SaveOptions",
    "tf.train": "CheckpointOptions",
}
REFUSED_NAMES = [f"{owner}.{name}" for owner, names in REFUSED.items() for name in names.split()]


def found(name: str) -> Any:
    value: Any = tf
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def test_every_name_is_there_or_refused_or_left_out() -> None:
    assert len(NAMES) > 700
    left = set().union(*LEFT.values())
    assert left <= set(NAMES), left - set(NAMES)
    missing = []
    for name in set(NAMES) - left:
        try:
            found(name)
        except NotInGraphModeError:
            assert name in REFUSED_NAMES
        except AttributeError:
            missing.append(name)
    assert not missing, sorted(missing)


@pytest.mark.parametrize("name", REFUSED_NAMES)
def test_a_refusal_says_what_to_use(name: str) -> None:
    assert name in NAMES
    with pytest.raises(NotImplementedError, match=rf"has no {name.replace('.', '[.]')}: use \w+"):
        found(name)(1)


def test_refused_classes_can_be_asked_for() -> None:
    assert not isinstance(tf.constant(1), tf.RaggedTensor)
    assert not hasattr(tf.dtypes.experimental, "int4")
    with pytest.raises(AttributeError, match="no name 'nonsense'"):
        found("tf.dtypes.experimental.nonsense")
