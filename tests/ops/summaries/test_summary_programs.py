"""Summaries against TensorFlow 1.15: values, tags, metadata, names of nodes, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import summary_programs
from flowstone.framework import errors

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "summaries" / "summaries.json").read_text(encoding="utf-8")
)


def test_every_program_has_its_results() -> None:
    assert list(GOLDEN) == list(summary_programs.PROGRAMS)


@pytest.mark.parametrize("name", summary_programs.PROGRAMS)
def test_summaries_are_tensorflows(name: str) -> None:
    found, expected = summary_programs.run(tf, name, summary_programs.by_pillow), GOLDEN[name]
    assert found.keys() == expected.keys()
    if "error" in expected:
        assert found == expected
        return
    assert found["nodes"] == expected["nodes"] and found["kept"] == expected["kept"]
    for value, other in zip(found["values"], expected["values"], strict=True):
        assert_alike(value, other)


def assert_alike(value: dict[str, Any], other: dict[str, Any]) -> None:
    sums = value["kind"] == "histo"
    assert value.keys() == other.keys()
    for key in value:
        if sums and key == "value":  # sums in another order
            np.testing.assert_allclose(value[key], other[key], rtol=1e-12)
        else:
            assert value[key] == other[key], key


def test_bad_input_is_named() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(errors.InvalidArgumentError, match="Nan in summary histogram for: h"):
            session.run(tf.summary.histogram("h", [float("nan")]))
        with pytest.raises(errors.InvalidArgumentError, match="sample_rate must be > 0"):
            session.run(tf.summary.audio("a", tf.zeros([1, 2]), 0.0))
        with pytest.raises(ValueError, match="dtype string"):
            tf.summary.text("t", [1.0])
        with pytest.raises(errors.InvalidArgumentError, match="serialized_summary_metadata"):
            session.run(tf.raw_ops.TensorSummaryV2(tag="t", tensor=1, serialized_summary_metadata="x"))


def test_the_first_form_of_tensor_summaries() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.raw_ops.TensorSummary(tensor=[1, 2], description='{"typeHint": "hint"}', name="first")
        (value,) = tf.Summary.FromString(session.run(made)).value
        assert value.node_name == "first" and value.tensor.tensor_content == b"\1\0\0\0\2\0\0\0"
        assert tf.summary.get_summary_description(made.op.node_def).type_hint == "hint"
        with pytest.raises(ValueError, match="Const"):
            tf.summary.get_summary_description(tf.constant(1).op.node_def)


def test_a_sound_without_frames_is_that_of_later_versions() -> None:
    """1.15 refuses it; 2.21 writes a WAV file that has only a header."""
    with tf.Graph().as_default(), tf.Session() as session:
        made = session.run(tf.summary.audio("au", tf.zeros([1, 0]), 8000.0))
        (value,) = tf.Summary.FromString(made).value
        assert len(made) == 80 and value.audio.length_frames == 0
        assert value.audio.encoded_audio_string[-8:] == b"data\0\0\0\0"
