"""`tf.contrib.labeled_tensor`: names, axes and values of TensorFlow 1.15.5, and errors."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.contrib.labeled_tensor.labeled_programs import answers

import flowstone as tf

lt = tf.contrib.labeled_tensor
GOLDEN = Path(__file__).parents[2] / "golden" / "contrib" / "labeled_tensor.json"


@pytest.fixture(scope="module")
def found():
    return answers(tf)


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text()).items(), ids=lambda case: case[0])
def test_result(case, found):
    name, (tensor_name, axes, value) = case
    assert found[name][:2] == [tensor_name, axes]
    np.testing.assert_allclose(found[name][2], value, rtol=2e-4, atol=1e-4)


@pytest.fixture
def x():
    with tf.Graph().as_default():
        yield lt.LabeledTensor(tf.zeros([2, 3, 4]), ["b", ("c", ["red", "green", "blue"]), "d"])


# What TensorFlow 1.15.5 raises; its type checks raise a TypeError of their own.
WRONG = {
    "rank": (ValueError, lambda x: lt.LabeledTensor(x.tensor, ["b"])),
    "size": (ValueError, lambda x: lt.LabeledTensor(x.tensor, ["b", ("c", 2), "d"])),
    "no tensor": (TypeError, lambda x: lt.LabeledTensor(np.ones([2]), ["b"])),
    "axes": (TypeError, lambda x: lt.LabeledTensor(x.tensor, 3)),
    "same names": (ValueError, lambda x: lt.Axes([("a", 2), ("a", 3)])),
    "same labels": (ValueError, lambda x: lt.Axis("a", ["x", "x"])),
    "axis": (TypeError, lambda x: lt.as_axis("a")),
    "axis name": (TypeError, lambda x: lt.Axis(3, 3)),
    "axis value": (TypeError, lambda x: lt.Axis("a", "xyz")),
    "no labels": (ValueError, lambda x: x.axes["b"].index(1)),
    "unknown label": (KeyError, lambda x: x.axes["c"].index("pink")),
    "unknown length": (ValueError, lambda x: len(lt.Axis("a", None))),
    "key": (ValueError, lambda x: x[0]),
    "slice by label": (TypeError, lambda x: lt.slice(x, {"c": "red"})),
    "select by position": (ValueError, lambda x: lt.select(x, {"b": 1})),
    "select absent": (ValueError, lambda x: lt.select(x, {"z": 1})),
    "select steps": (NotImplementedError, lambda x: lt.select(x, {"c": slice("red", "green", 2)})),
    "orders": (lt.AxisOrderError, lambda x: x + lt.transpose(x)),
    "no order": (lt.AxisOrderError, lambda x: lt.impose_axis_order(x)),
    "wrong order": (lt.AxisOrderError, lambda x: lt.check_axis_order(x, ["d", "c", "b"])),
    "short order": (lt.AxisOrderError, lambda x: lt.check_axis_order(x, ["b"])),
    "labels differ": (ValueError, lambda x: x + lt.constant(1.0, axes=[("c", 3)])),
    "no scalar": (ValueError, lambda x: lt.convert_to_labeled_tensor(np.ones([3]))),
    "list": (TypeError, lambda x: lt.convert_to_labeled_tensor([3])),
    "transpose": (ValueError, lambda x: lt.transpose(x, ["b"])),
    "concat none": (ValueError, lambda x: lt.concat([], "b")),
    "concat absent": (ValueError, lambda x: lt.concat([x, x], "z")),
    "concat labels": (ValueError, lambda x: lt.concat([x, x], "c")),
    "pack": (ValueError, lambda x: lt.pack([x, x], "b")),
    "reshape order": (lt.AxisOrderError, lambda x: lt.reshape(x, ["d", "c"], ["e"])),
    "reshape absent": (ValueError, lambda x: lt.reshape(x, ["z"], ["e"])),
    "reshape sizes": (ValueError, lambda x: lt.reshape(x, ["c", "d"], ["e", "f"])),
    "rename": (ValueError, lambda x: lt.rename_axis(x, "c", "b")),
    "batch": (ValueError, lambda x: lt.batch([x], 4, enqueue_many=True)),
    "crop": (ValueError, lambda x: lt.random_crop(x, {"z": 1})),
    "squeeze": (ValueError, lambda x: lt.squeeze(x, ["b"])),
    "matmul rank": (NotImplementedError, lambda x: lt.matmul(x, x)),
    "matmul shared": (NotImplementedError, lambda x: lt.matmul(x[0, :, :], x[0, :, :])),
    "matmul none": (ValueError, lambda x: lt.matmul(x[0, :, 0], x[:, 0, :])),
    "reduce": (ValueError, lambda x: lt.reduce_sum(x, "z")),
    "tile": (ValueError, lambda x: lt.tile(x, {"c": 2})),
    "pad": (ValueError, lambda x: lt.pad(x, {"z": (1, 1)})),
    "cast": (TypeError, lambda x: lt.cast(x)),
    "mask": (ValueError, lambda x: lt.boolean_mask(x, lt.constant([True], axes=["q"]))),
    "masks": (NotImplementedError, lambda x: lt.boolean_mask(x, x > 0.0)),
    "where": (ValueError, lambda x: lt.where(x > 0.0, x, 1.0)),
    "map scalar": (IndexError, lambda x: lt.map_fn(lambda row: row, lt.constant(1.0))),
    "decode": (ValueError, lambda x: lt.ReshapeCoder(["c"], ["e"]).decode(x)),
    "crelu": (ValueError, lambda x: lt.nn.crelu(x)),
    "l2_loss": (ValueError, lambda x: lt.nn.l2_loss(x)),
    "softmax loss": (ValueError, lambda x: lt.nn.softmax_cross_entropy_with_logits(x, x)),
    "sparse loss": (ValueError, lambda x: lt.nn.sparse_softmax_cross_entropy_with_logits(x, x)),
    "features": (TypeError, lambda x: lt.parse_example(tf.constant(["a"]), {})),
    "feature sizes": (
        ValueError,
        lambda x: lt.parse_single_example("", {"a": lt.FixedLenFeature([("x", None)], tf.float32)}),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case, x):
    error, call = WRONG[case]
    with pytest.raises(error):
        call(x)


def test_an_axis_and_a_tensor_say_what_they_are(x):
    assert repr(x.axes["c"]) == "Axis('c', ('red', 'green', 'blue'))"
    assert repr(x).splitlines()[1] == " axes=[('b', Dimension(2)),"
    assert repr(x.axes.remove("c")) == "Axes([('b', Dimension(2)),\n      ('d', Dimension(4))])"
    colours = x.axes["c"]
    assert (colours.name, colours.size, colours.value) == ("c", 3, ("red", "green", "blue"))
    assert (colours.labels, colours.dimension, len(colours)) == (colours.value, tf.Dimension(3), 3)
    assert hash(colours) == hash(lt.Axis("c", ["red", "green", "blue"]))
    assert (x.dtype, x.shape, x.get_shape()) == (tf.float32, x.tensor.shape, x.tensor.shape)


def test_an_order_of_axes_holds_within_its_scope(x):
    with lt.axis_order_scope(["b", "c", "d"]):
        assert lt.nn.core.get_axis_order() == ["b", "c", "d"]
        lt.check_axis_order(x)
        assert list((x + x).axes) == ["b", "c", "d"]
        with pytest.raises(lt.AxisOrderError):
            lt.transpose(x) + 1.0
    assert lt.nn.core.get_axis_order() is None


def test_aligned_tensors_have_all_axes(x):
    first, second, axes = lt.align(x, lt.constant(np.ones([4, 5]), tf.float32, ["d", "e"]))
    assert [list(each) for each in (first.axes, second.axes, axes)] == [["b", "c", "d", "e"]] * 3
    assert second.shape.as_list() == [1, 1, 4, 5]


def test_functions_made_of_functions_of_tensors(x):
    doubled = lt.define_unary_op("doubled", lambda tensor, name: tf.add(tensor, tensor, name=name))
    joined = lt.define_binary_op("joined", lambda a, b, name: tf.add(a, b, name=name))
    total = lt.define_reduce_op("total", tf.reduce_sum)
    assert doubled(x).name == "lt_doubled:0"
    assert joined(x, 1.0).name == "lt_joined:0"
    assert list(total(x, "c").axes) == ["b", "d"]
    assert total.__name__ == "total"


def test_a_session_fetches_and_feeds_labelled_tensors():
    with tf.Graph().as_default(), tf.Session() as session:
        fed = lt.placeholder(tf.float32, ["b", ("c", 2)])
        assert session.run(fed * 2.0, {fed: [[1.0, 2.0]]}).tolist() == [[2.0, 4.0]]
        assert tf.add(fed, 1.0).shape.as_list() == [None, 2]


def test_examples_become_labelled_tensors():
    values = {"a": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))}
    example = tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()
    features = {"a": lt.FixedLenFeature([("x", 2)], tf.float32), "b": lt.FixedLenFeature([], tf.int64, 7)}
    assert (features["a"].axes[0].name, features["a"].dtype, features["b"].default_value) == (
        "x",
        tf.float32,
        7,
    )
    with tf.Graph().as_default(), tf.Session() as session:
        batch = lt.parse_example(lt.constant([example, example], axes=["batch"]), features)
        one = lt.parse_single_example(lt.constant(example), features)
        assert [list(batch[key].axes) for key in "ab"] == [["batch", "x"], ["batch"]]
        assert session.run(batch["a"].tensor).tolist() == [[1.0, 2.0], [1.0, 2.0]]
        assert session.run([one["a"].tensor, one["b"].tensor])[1] == 7


@pytest.mark.parametrize("shuffled", [False, True])
def test_batches_come_from_queues(shuffled):
    with tf.Graph().as_default():
        many = lt.constant(np.arange(4.0), axes=["batch"])
        make = lt.shuffle_batch if shuffled else lt.batch
        (batch,) = make([many], 4, enqueue_many=True)
        (smaller,) = make([lt.constant(1.0, axes=[("c", 3)])], 4, allow_smaller_final_batch=True)
        assert list(batch.axes.values()) == [lt.Axis("batch", 4)]
        assert list(smaller.axes.values()) == [lt.Axis("batch", None), lt.Axis("c", 3)]
        with tf.train.MonitoredSession() as session:
            values = session.run(batch.tensor).tolist()
    assert set(values) <= {0.0, 1.0, 2.0, 3.0} if shuffled else values == [0.0, 1.0, 2.0, 3.0]
