"""Summaries have TensorFlow's names, nodes and bytes."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.framework.types.tensor_proto import messages
from flowstone.ops.summaries.histograms import bucket_limits

pytestmark = pytest.mark.usefixtures("graph")


def nodes(graph: tf.Graph) -> list[tuple[str, str]]:
    return [(op.name, op.type) for op in graph.get_operations()]


def read(session: tf.Session, summary: tf.Tensor) -> dict[str, float]:
    message = tf.Summary.FromString(session.run(summary))
    return {value.tag: value.simple_value for value in message.value}


def test_scalar(graph: tf.Graph) -> None:
    loss = tf.summary.scalar("loss", 3.0)
    assert nodes(graph) == [("loss/tags", "Const"), ("loss/values", "Const"), ("loss", "ScalarSummary")]
    assert loss.dtype is tf.string
    assert loss.shape.as_list() == []
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == [loss]
    assert tf.Session().run(loss) == b"\n\x0b\n\x04loss\x15\x00\x00@@"


@pytest.mark.parametrize(
    ("name", "family", "node", "tag"),
    [
        ("a b/c$d", None, "sc/a_b/c_d", "sc/a_b/c_d"),
        ("a b/c$d", "fam", "sc/fam/a_b/c_d", "fam/sc/fam/a_b/c_d"),
        ("/x/", None, "x", "x"),
    ],
)
def test_names_and_tags(name: str, family: str | None, node: str, tag: str) -> None:
    with tf.name_scope("sc"):
        summary = tf.summary.scalar(name, 1.0, collections=["mine"], family=family)
    assert summary.op.name == node
    assert tf.get_collection("mine") == [summary]
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == []
    assert read(tf.Session(), summary) == {tag: 1.0}


def test_a_changed_name_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        tf.summary.scalar("a b", 1.0)
    assert caplog.messages == ["Summary name a b is illegal; using a_b instead."]


@pytest.mark.parametrize(
    "dtype",
    ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32",
     "int64", "uint64"],
)  # fmt: skip
def test_every_type(dtype: str) -> None:
    assert read(tf.Session(), tf.summary.scalar("s", tf.constant(7, dtype))) == {"s": 7.0}


@pytest.mark.parametrize("value", [True, "s", 1j])
def test_what_is_no_real_number_has_no_summary(value: object) -> None:
    with pytest.raises(TypeError, match="of op 'ScalarSummary' has DataType"):
        tf.summary.scalar("s", value)


def test_several_tags() -> None:
    tags, values = tf.placeholder(tf.string), tf.placeholder(tf.float32)
    summary = F.ScalarSummary(tags, values)
    with tf.Session() as session:
        message = session.run(summary, {tags: ["a", "b"], values: [np.nan, 2.0]})
        assert message == b"\n\x08\n\x01a\x15\x00\x00\xc0\x7f\n\x08\n\x01b\x15\x00\x00\x00@"
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"not the same shape: \[2\] != \[3\]"):
            session.run(summary, {tags: ["a", "b"], values: [1.0, 2.0, 3.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape: \[\] != \[1\] \(tag 'a'\)"):
            session.run(summary, {tags: "a", values: [1.0]})


def test_merge(graph: tf.Graph) -> None:
    summaries = [tf.summary.scalar(name, 1.0) for name in ("a", "b")]
    first = tf.summary.merge(summaries)
    second = tf.summary.merge(summaries, collections=["k"], name="mm")
    assert first.name == "Merge/MergeSummary:0"
    assert second.name == "mm/mm:0"
    assert tf.get_collection("k") == [second]
    assert read(tf.Session(), first) == {"a": 1.0, "b": 1.0}


def test_merge_all() -> None:
    assert tf.summary.merge_all() is None
    outside = tf.summary.scalar("a", 1.0)
    with tf.name_scope("sc"):
        inside = tf.summary.scalar("a", 2.0)
    assert list(tf.summary.merge_all().op.inputs) == [outside, inside]
    assert list(tf.summary.merge_all(scope="^sc").op.inputs) == [inside]
    assert tf.summary.merge_all("other") is None


@pytest.mark.parametrize("value", [0.0, -0.0, np.nan, -np.inf, 1e300, -1e300, 2**60 + 1, 7])
@pytest.mark.parametrize("tag", ["", "é", "t" * 200])
def test_scalars_are_written_as_protobuf_does(tag: str, value: float) -> None:
    expected = messages("summary_pb2").Summary()
    expected.value.add(tag=tag, simple_value=value)
    with tf.Session() as session:
        found = session.run(F.ScalarSummary(tag, np.array(value)))
    assert found == expected.SerializeToString()


def test_merge_refuses_two_values_of_a_tag() -> None:
    summary = tf.summary.scalar("a", 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Duplicate tag a found in summary inputs"):
        tf.Session().run(tf.summary.merge([summary, summary]))


def test_merge_refuses_what_is_no_summary() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse one of the summary inputs"):
        tf.Session().run(tf.summary.merge([tf.constant("junk")]))


def test_merge_needs_summaries() -> None:
    with pytest.raises(ValueError, match="List argument 'inputs' to 'MergeSummary' Op with length 0"):
        tf.summary.merge([])


@pytest.mark.both_ways
def test_many_values_are_counted_like_few() -> None:
    few = np.array([-(1.1**3), -1e-12, 0.0, 1e-12, 1e-12 * 1.1, 1.1**5, 1e30, *bucket_limits()[97:-97:97]])
    with tf.Session() as session:
        one, many = (
            tf.Summary.FromString(session.run(tf.summary.histogram("h", x))).value[0].histo
            for x in (few, np.repeat(few, 500))
        )
    assert list(many.bucket_limit) == list(one.bucket_limit)
    assert list(many.bucket) == [500 * count for count in one.bucket]


def test_images_of_a_batch_are_scaled_each_by_itself() -> None:
    images = np.random.default_rng(3).standard_normal([5, 4, 3, 1]).astype("f")
    images[1], images[2] = abs(images[1]) * 1e-9, abs(images[2])
    images[3, 0, 1], images[4] = np.nan, np.inf

    def pixels(some: Any, most: int) -> list[Any]:
        with tf.Graph().as_default(), tf.Session() as session:
            summary = tf.Summary.FromString(session.run(tf.summary.image("i", some, most)))
            return [session.run(tf.image.decode_png(x.image.encoded_image_string)) for x in summary.value]

    together, alone = pixels(images, 5), [pixels(image[None], 1)[0] for image in images]
    np.testing.assert_array_equal(together, alone)
    assert together[2].max() == 255 and not together[1].any() and (together[4] == 255).all()
    positive, negative = images[0].max(), images[0].min()
    assert abs(together[0].astype(int) - 128).max() == 127
    assert (together[0] > 128).any() == (positive > 0) and (together[0] < 128).any() == (negative < 0)
