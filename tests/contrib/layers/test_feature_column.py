"""The older feature columns give what TensorFlow 1.15.5 gives; `make_older_column_goldens.py` asks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.contrib.layers import older_columns

import flowstone as tf

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "contrib" / "older_columns.json").read_text(encoding="utf-8")
)


def close(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) or isinstance(found, float):
        return bool(found == pytest.approx(expected, rel=1e-4, abs=2e-4))
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(close(a, b) for a, b in zip(found, expected))
    return bool(found == expected)


@pytest.mark.parametrize("name", older_columns.PROGRAMS)
def test_program_is_tensorflows(name: str, tmp_path: Path) -> None:
    found, expected = older_columns.run(tf, name, tmp_path), GOLDEN[name]
    for what in ("variables", "collections"):
        assert found[what] == expected[what]
    assert len(found["values"]) == len(expected["values"])
    for value, wanted in zip(found["values"], expected["values"]):
        assert close(value, wanted), (value, wanted)


def test_errors_are_tensorflows(tmp_path: Path) -> None:
    found = older_columns.refused(tf, tmp_path)
    assert set(found) == set(GOLDEN["errors"])
    different = {
        name: (error, GOLDEN["errors"][name])
        for name, error in found.items()
        if [error[0], error[1].partition(" column: ")[0]]
        != [GOLDEN["errors"][name][0], GOLDEN["errors"][name][1].partition(" column: ")[0]]
    }
    assert not different


def test_columns_need_a_layer_with_columns() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="at least one"):
        tf.contrib.layers.input_from_feature_columns({"x": tf.zeros([1, 1])}, [])
    with pytest.raises(TypeError, match="dimension must be an integer"):
        tf.contrib.layers.real_valued_column("x", dimension=None)


def test_modules_within_are_those_of_contrib() -> None:
    within = tf.contrib.layers.feature_column
    assert within.lookup is tf.contrib.lookup
    assert within.sparse_feature_cross_op.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY == 0xDECAFCAFFE
