"""`tf.contrib.model_pruning`: the numbers were printed by TensorFlow 1.15.5 for the same programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pruning = tf.contrib.model_pruning


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default(), tf.Session():
        tf.train.get_or_create_global_step()
        yield


def _weights(name: str = "w") -> Any:
    return tf.get_variable(name, initializer=np.sin(np.arange(40)).astype(np.float32).reshape(5, 8))


def test_sparsity_grows_along_the_schedule() -> None:
    session = tf.get_default_session()
    pruning.apply_mask(_weights(), "q")
    spec = pruning.get_pruning_hparams().parse(
        "name=pruning,end_pruning_step=10,pruning_frequency=2,sparsity_function_end_step=10"
    )
    pruner = pruning.Pruning(spec)
    update = pruner.conditional_mask_update_op()
    count = tf.assign_add(tf.train.get_global_step(), 1)
    session.run(tf.global_variables_initializer())
    (mask,), (threshold,), found = pruning.get_masks(), pruning.get_thresholds(), []
    for _ in range(12):
        session.run(count)
        session.run(update)
        found.append([1 - session.run(mask).mean(), session.run(threshold)])
    np.testing.assert_allclose(found[1], [0.25, 0.4121185], rtol=1e-5)
    np.testing.assert_allclose(found[2], found[1])
    np.testing.assert_allclose(found[5], [0.475, 0.6569866], rtol=1e-5)
    np.testing.assert_allclose(found[9], [0.5, 0.6636339], rtol=1e-5)
    last = next(v for v in tf.global_variables() if v.op.name == "pruning/last_mask_update_step")
    assert session.run(last) == 10
    np.testing.assert_allclose(session.run(pruning.get_weight_sparsity()), [0.5])
    np.testing.assert_allclose(
        session.run(pruning.get_masked_weights()[0]), session.run(mask * pruning.get_weights()[0])
    )


@pytest.mark.parametrize(
    ("options", "rows", "threshold"),
    [
        ("block_height=2,block_width=2", ["00111100"] * 4 + ["11001100"], 0.6486072),
        (
            "block_height=2,block_width=2,block_pooling_function=MAX",
            ["11110011"] * 2 + ["00000011"] * 2 + ["11001100"],
            0.9880316,
        ),
        ("block_height=3,block_width=4,threshold_decay=0.5", ["11111111"] * 5, 0.3272682),
        ("threshold_decay=0.9", ["01111111", "11111111", "11111101", "11111111", "11111111"], 0.06636339),
    ],
)
def test_blocks_and_decay(options: str, rows: list[str], threshold: float) -> None:
    session = tf.get_default_session()
    pruning.apply_mask(_weights(), "q")
    spec = pruning.get_pruning_hparams().parse(f"initial_sparsity=0.5,target_sparsity=0.5,{options}")
    update = pruning.Pruning(spec).mask_update_op()
    session.run(tf.global_variables_initializer())
    session.run(update)
    mask = session.run(pruning.get_masks()[0]).astype(int)
    assert ["".join(map(str, row)) for row in mask.tolist()] == rows
    np.testing.assert_allclose(session.run(pruning.get_thresholds()[0]), threshold, rtol=1e-5)


def test_weights_of_their_own_sparsity_and_blocks() -> None:
    session = tf.get_default_session()
    pruning.apply_mask(_weights(), "q")
    pruning.apply_mask(_weights("lay/w3"), "q3")
    spec = pruning.get_pruning_hparams().parse(
        "weight_sparsity_map=[lay/w3:0.75],block_dims_map=[w:2x4],sparsity_function_end_step=10"
    )
    pruner = pruning.Pruning(spec)
    update = pruner.mask_update_op()
    pruner.add_pruning_summaries()
    pruner.print_hparams()
    names = [tensor.op.name for tensor in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert names[0] == "model_pruning_summaries/sparsity" and len(names) == 6
    session.run(tf.global_variables_initializer())
    session.run(tf.assign(tf.train.get_global_step(), 5))
    session.run(update)
    np.testing.assert_allclose(session.run(pruning.get_thresholds()), [0.62715095, 0.65622056], rtol=1e-5)
    np.testing.assert_allclose(session.run(pruning.get_weight_sparsity()), [0.6, 0.7], rtol=1e-5)


def test_layers_and_cells_have_masks() -> None:
    tf.set_random_seed(3)  # by which activations are not all negative
    x = tf.ones([2, 8, 8, 3])
    net = pruning.masked_conv2d(x, 4, 3, scope="c")
    net = pruning.masked_convolution(net, 4, 3, normalizer_fn=tf.contrib.layers.batch_norm, scope="d")
    net = pruning.masked_fully_connected(tf.reshape(net, [2, 256]), 3, scope="f")
    cells = [pruning.MaskedBasicLSTMCell(3), pruning.MaskedLSTMCell(4, use_peepholes=True)]
    for cell in cells:
        net, _ = cell(net, cell.zero_state(2, tf.float32))
    names = [v.op.name for v in pruning.get_masks()]
    scopes = ["c", "d", "f", "masked_basic_lstm_cell", "masked_lstm_cell"]
    assert names == [f"{scope}/mask" for scope in scopes]
    assert [v.op.name for v in pruning.get_weights()][2:4] == ["f/weights", "masked_basic_lstm_cell/kernel"]
    assert pruning.get_masked_weights()[0].op.name == "c/weights/masked_weight"
    assert not [v for v in tf.trainable_variables() if "mask" in v.op.name.split("/")[-1]]
    session = tf.get_default_session()
    session.run(tf.global_variables_initializer())
    assert np.abs(session.run(net)).max() > 0
    for mask in pruning.get_masks()[3:]:
        mask.load(np.zeros(mask.shape.as_list()), session)
    np.testing.assert_array_equal(session.run(net), np.zeros([2, 4]))


def test_bad_arguments_are_refused() -> None:
    for options in ("initial_sparsity=1.5", "begin_pruning_step=20,end_pruning_step=5"):
        with pytest.raises(ValueError, match="must be"):
            pruning.Pruning(pruning.get_pruning_hparams().parse(options))
    with pytest.raises(ValueError, match="must be after"):
        pruning.Pruning(pruning.get_pruning_hparams().parse("sparsity_function_begin_step=300"))
    with pytest.raises(ValueError, match="rank 3"):
        pruning.masked_conv2d(tf.ones([2, 8, 3]), 4, 3)
    with pytest.raises(ValueError, match="should be integer"):
        pruning.masked_fully_connected(tf.ones([2, 8]), 4.5)


def test_variables_come_in_tensorflows_order() -> None:
    x = tf.ones([2, 8, 8, 3])
    pruning.masked_conv2d(x, 4, 3, scope="c")
    pruning.masked_conv2d(x, 4, 3, normalizer_fn=tf.contrib.layers.batch_norm, scope="d")
    pruning.masked_fully_connected(tf.reshape(x, [2, 192]), 5, scope="f")
    names = [v.op.name for v in tf.contrib.framework.get_model_variables()]
    assert names[:4] == ["c/mask", "c/weights", "c/threshold", "c/biases"]
    assert names[4:8] == ["d/mask", "d/weights", "d/threshold", "d/BatchNorm/beta"]
    assert names[-4:] == ["f/weights", "f/mask", "f/threshold", "f/biases"]


def test_training_prunes_and_masks_are_stripped(tmp_path: Path) -> None:
    x = tf.placeholder_with_default(tf.ones([2, 5]), [2, 5], name="in")
    y = tf.identity(pruning.masked_fully_connected(x, 4, activation_fn=None, scope="f"), "out")
    loss = tf.losses.mean_squared_error(tf.ones([2, 4]), y)
    spec = pruning.get_pruning_hparams().parse("initial_sparsity=0.5")
    update = pruning.Pruning(spec).mask_update_op()
    train_op = tf.contrib.training.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    pruning.train(train_op, str(tmp_path), update, number_of_steps=3, log_every_n_steps=0)
    graph_def = pruning.graph_def_from_checkpoint(str(tmp_path), ["out"])
    stripped = pruning.strip_pruning_vars_fn(graph_def, ["out"])
    assert {node.name for node in graph_def.node} > {node.name for node in stripped.node}
    assert "f/mask" not in {node.name for node in stripped.node}
    values = []
    for each in (graph_def, stripped):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.import_graph_def(each, name="")
            values.append(session.run("out:0"))
            weights = session.run("f/weights/masked_weight:0")
            assert (weights == 0).mean() == 0.5
    np.testing.assert_allclose(*values, rtol=1e-6)
    with pytest.raises(ValueError, match="Could not find a checkpoint"):
        pruning.graph_def_from_checkpoint(str(tmp_path / "none"), ["out"])
