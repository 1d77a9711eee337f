"""`tf.contrib.tensor_forest`: forests grow, answer and are saved as TensorFlow 1.15.5's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.tensor_forest import forest_programs

import flowstone as tf
from flowstone.compat.tensorflow_name import install
from flowstone.framework import errors
from flowstone.io.proto import decision_trees_pb2, fertile_stats_pb2

install()
from tensorflow.contrib.tensor_forest.python import tensor_forest  # noqa: E402
from tensorflow.contrib.tensor_forest.python.ops import data_ops, gen_model_ops  # noqa: E402
from tensorflow.python.ops import resources  # noqa: E402

FOLDER = Path(__file__).parents[2] / "golden" / "contrib"
ANSWERS = json.loads((FOLDER / "forests.json").read_text())


def _numbers(values: Any) -> list[float]:
    return [each.float_value for each in values]


def _node(node: Any) -> tuple[tuple[Any, ...], list[float]]:
    """What a node is and its numbers; which numbers its children have depends on the order of threads."""
    if node.HasField("binary_node"):
        test = node.binary_node.inequality_left_child_test
        any_test = node.binary_node.custom_left_child_test.value
        return (test.feature_id.id.value, test.type, any_test), [test.threshold.float_value]
    sparse = node.leaf.sparse_vector.sparse_value
    numbers = [sparse[key].float_value for key in sorted(sparse)] + _numbers(node.leaf.vector.value)
    return ("leaf", *sorted(sparse)), numbers


def _by_path(text: str) -> dict[str, Any]:
    """The nodes of a tree by the way to them from the root: "LR" is the left child's right one."""
    nodes = decision_trees_pb2.Model.FromString(text.encode("latin-1")).decision_tree.nodes
    paths, found = {0: ""}, {}
    for node in nodes:
        path = paths[node.node_id.value]
        found[path] = node
        if node.HasField("binary_node"):
            paths[node.binary_node.left_child_id.value] = path + "L"
            paths[node.binary_node.right_child_id.value] = path + "R"
    return found


def _assert_same_nodes(found: Any, expected: Any) -> None:
    kind, numbers = _node(expected)
    assert _node(found)[0] == kind
    np.testing.assert_allclose(_node(found)[1], numbers, rtol=1e-5, atol=1e-6)


def _leaf(part: Any) -> list[float]:
    counts, sums = part.classification, part.regression
    sparse = counts.sparse_counts.sparse_value
    numbers = [sparse[key].float_value for key in sorted(sparse) if sparse[key].float_value]
    numbers += _numbers(counts.dense_counts.value)
    return [
        part.weight_sum,
        *numbers,
        *_numbers(sums.mean_output.value),
        *_numbers(sums.mean_output_squares.value),
    ]


def _slots(text: str, model: str) -> dict[str, Any]:
    """The statistics of leaves by the way to them."""
    message = fertile_stats_pb2.FertileStats.FromString(text.encode("latin-1"))
    paths = {node.node_id.value: path for path, node in _by_path(model).items()}
    return {
        paths[slot.node_id]: (
            [slot.depth, *_leaf(slot.post_init_leaf_stats)],
            [[*_leaf(each.left_stats)] for each in slot.candidates],
        )
        for slot in message.node_to_slot
    }


@pytest.mark.parametrize("name", forest_programs.cases())
def test_forests_grow_as_tensorflows(name: str) -> None:
    found, expected = forest_programs.train(tf, **forest_programs.cases()[name]), ANSWERS[name]
    for step in range(forest_programs.STEPS):
        for tree in range(len(expected["models"][step])):
            ours, theirs = found["models"][step][tree], expected["models"][step][tree]
            mine, others = _by_path(ours), _by_path(theirs)
            assert sorted(mine) == sorted(others)
            for path, node in others.items():
                _assert_same_nodes(mine[path], node)
            slots = _slots(found["stats"][step][tree], ours)
            golden_slots = _slots(expected["stats"][step][tree], theirs)
            assert sorted(slots) == sorted(golden_slots)
            for path, (totals, candidates) in golden_slots.items():
                np.testing.assert_allclose(slots[path][0], totals, rtol=1e-5, atol=1e-5)
                assert len(slots[path][1]) == len(candidates)
                for one, other in zip(slots[path][1], candidates, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    for key in ("probabilities", "sizes", "variance", "usage"):
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-5, atol=1e-6, err_msg=key)


def test_paths_are_those_of_tensorflow() -> None:
    found, expected = forest_programs.train(tf, **forest_programs.cases()["paths"]), ANSWERS["paths"]
    for ours, theirs in zip(found["paths"], expected["paths"], strict=True):
        mine, others = (
            fertile_stats_pb2.TreePath.FromString(row[0].encode("latin-1")).nodes_visited
            for row in (ours, theirs)
        )
        assert len(mine) == len(others) > 0
        for one, other in zip(mine, others, strict=True):
            _assert_same_nodes(one, other)


def test_a_forest_of_tensorflow_is_restored(tmp_path: Path) -> None:
    found = forest_programs.restore(tf, str(FOLDER / "forest_checkpoint" / "forest"))
    for key, value in ANSWERS["saved"].items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-6, err_msg=key)


def test_a_forest_is_saved_and_restored(tmp_path: Path) -> None:
    saved = forest_programs.save(tf, str(tmp_path / "forest"))
    found = forest_programs.restore(tf, str(tmp_path / "forest"))
    for key, value in saved.items():
        np.testing.assert_array_equal(found[key], value, err_msg=key)


def _learn(steps: int, **params: Any) -> float:
    """The part of new examples that a forest gets right; half of them are of each class."""
    draws = np.random.RandomState(0)
    with tf.Graph().as_default(), tf.Session() as session:
        filled = tensor_forest.ForestHParams(
            num_classes=2, num_features=6, split_after_samples=30, base_random_seed=3, **params
        ).fill()
        forest = tensor_forest.RandomForestGraphs(filled)
        features, labels = tf.placeholder(tf.float32, [None, 6]), tf.placeholder(tf.int64, [None])
        step, (means, _, _) = forest.training_graph(features, labels), forest.inference_graph(features)
        session.run(tf.global_variables_initializer())
        session.run(resources.initialize_resources(resources.shared_resources()))
        assert session.run(resources.report_uninitialized_resources()).size == 0
        for _ in range(steps):
            x = draws.uniform(-1, 1, [200, 6]).astype(np.float32)
            session.run(step, {features: x, labels: (x[:, 0] + x[:, 1] > 0).astype(np.int64)})
        x = draws.uniform(-1, 1, [1000, 6]).astype(np.float32)
        said = session.run(means, {features: x}).argmax(1)
    return float(np.mean(said == (x[:, 0] + x[:, 1] > 0)))


@pytest.mark.parametrize(
    ("params", "least"),
    [({}, 0.88), ({"bagging_fraction": 0.6}, 0.85), ({"feature_bagging_fraction": 0.7}, 0.75)],
)
def test_a_forest_learns(params: dict[str, Any], least: float) -> None:
    before, after = _learn(0, num_trees=8, **params), _learn(25, num_trees=8, **params)
    assert before < 0.6
    assert after > least


def test_features_by_name() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        columns = {
            "b": tf.constant([[1.0, 2.0]]),
            "a": tf.constant([[3]]),
            "c": tf.constant([["x"]]),
            "d": tf.SparseTensor([[0, 1]], tf.constant([4], tf.int64), [1, 3]),
        }
        dense, sparse, spec = data_ops.ParseDataTensorOrDict(columns)
        assert spec.SerializeToString() == (
            "dense_features_size: 4 dense: [{name: a original_type: 1 size: 1}"
            "{name: b original_type: 0 size: 2}{name: c original_type: 1 size: 1}]"
            " sparse: [{name: all_sparse original_type: 1 size: -1}]"
        )
        np.testing.assert_allclose(session.run(dense), [[3, 1, 2, 1.3272412e19]], rtol=1e-6)
        assert session.run(sparse).values.tolist() == [4.0]


def test_sparse_features_that_are_missing_are_zero() -> None:
    values = np.array([3, 1, 2, 0.5, -1, 6], np.float32)
    features_indices = [[0, 0], [1, 0], [2, 0], [5, 0], [6, 0], [7, 0]]
    with tf.Graph().as_default(), tf.Session() as session:
        params = tensor_forest.ForestHParams(
            num_classes=2, num_features=1, num_trees=1, split_after_samples=4, num_splits_to_consider=3
        ).fill()
        forest = tensor_forest.RandomForestGraphs(params)
        features = tf.SparseTensor(features_indices, values, [8, 1])
        step = forest.training_graph(features, tf.constant([0, 1, 1, 1, 1, 0, 0, 0]))
        session.run(tf.global_variables_initializer())
        session.run(resources.initialize_resources(resources.shared_resources()))
        session.run(step)
        model = session.run(gen_model_ops.tree_serialize(forest.variables[0].tree))
    nodes = decision_trees_pb2.Model.FromString(model).decision_tree.nodes
    # The candidates are 3, 1 and 2; those that follow are at most 0.5, but for the last, which is 6.
    assert nodes[0].binary_node.inequality_left_child_test.threshold.float_value in (1.0, 2.0, 3.0)
    assert [_numbers(node.leaf.vector.value) for node in nodes[1:]] == [[2.0, 2.0], [1.0, 0.0]]


def _error_of(run: Any, features: Any, labels: Any) -> str:
    with tf.Graph().as_default(), tf.Session() as session:
        params = tensor_forest.ForestHParams(num_classes=2, num_features=2, num_trees=1).fill()
        forest = tensor_forest.RandomForestGraphs(params)
        step = forest.training_graph(tf.constant(features), tf.constant(labels))
        if run:
            session.run(resources.initialize_resources(resources.shared_resources()))
        with pytest.raises((errors.InvalidArgumentError, errors.NotFoundError)) as raised:
            session.run(step)
    return str(raised.value)


def test_errors_say_what_is_wrong() -> None:
    pair = np.zeros([2, 2], np.float32)
    assert "run its initializer first" in _error_of(False, pair, [0, 1])
    assert "label 2 is none of the forest's 2 classes" in _error_of(True, pair, [0, 2])
    assert "2 examples have 3 labels" in _error_of(True, pair, [0, 1, 0])
    with pytest.raises(ValueError, match="split_finish_name='basic'"):
        tensor_forest.ForestHParams(num_classes=2, num_features=2, split_finish_name="hoeffding").fill()
    with pytest.raises(AttributeError, match="num_classes"):
        tensor_forest.ForestHParams(num_features=2).fill()
