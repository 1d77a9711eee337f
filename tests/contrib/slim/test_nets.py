"""The networks have the variables, end points and nodes of TensorFlow 1.15.5's."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib import slim
from flowstone.contrib.slim import nets
from flowstone.contrib.slim.nets import inception, resnet_utils, resnet_v1, resnet_v2, vgg

GOLDEN = Path(__file__).parents[2] / "golden"
FACTS = json.loads((GOLDEN / "contrib/slim_nets.json").read_text())


def maker() -> Any:
    """The program that wrote the facts, whose `describe` describes our networks too."""
    path = GOLDEN / "make_slim_net_goldens.py"
    spec = importlib.util.spec_from_file_location("make_slim_net_goldens", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = maker()


@pytest.mark.parametrize("name", FACTS)
def test_a_network_is_tensorflows(name: str) -> None:
    assert MAKER.shortened(name, MAKER.describe(tf, slim, nets, name)) == FACTS[name]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: resnet_v1.resnet_v1_50(x, output_stride=3), "multiple of 4"),
        (lambda x: resnet_v1.resnet_v1_50(x, output_stride=64), "cannot be reached"),
        (lambda x: resnet_v2.resnet_v2_50(x, output_stride=12), "cannot be reached"),
        (lambda x: inception.inception_v1_base(x, "no_such"), "Unknown final endpoint no_such"),
        (lambda x: inception.inception_v3_base(x, depth_multiplier=0), "not greater than zero"),
        (lambda x: inception.inception_v2(x, depth_multiplier=-1), "not greater than zero"),
    ],
)
def test_what_cannot_be_built(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(tf.placeholder(tf.float32, [1, 65, 65, 3]))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_part_of_inception(version: int) -> None:
    images = tf.placeholder(tf.float32, [1, 299, 299, 3])
    base = getattr(inception, f"inception_v{version}_base")
    net, end_points = base(images, "Conv2d_1a_3x3" if version == 3 else "Conv2d_1a_7x7")
    assert list(end_points.values()) == [net]


@pytest.mark.parametrize("version", [2, 3])
def test_images_of_any_size(version: int) -> None:
    images = tf.placeholder(tf.float32, [None, None, None, 3])
    logits, _ = getattr(inception, f"inception_v{version}")(images, num_classes=5)
    assert logits.shape.as_list() == [None, 5]


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_a_strided_convolution_is_a_subsampled_one(factor: int) -> None:
    tf.set_random_seed(1)
    images = tf.constant(np.random.default_rng(0).normal(size=[1, 9, 8, 3]).astype(np.float32))
    strided = resnet_utils.conv2d_same(images, 4, 3, factor, scope="convolution")
    tf.get_variable_scope().reuse_variables()
    whole = slim.conv2d(images, 4, 3, scope="convolution")
    subsampled = resnet_utils.subsample(whole, factor)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(*session.run([strided, subsampled]), rtol=1e-4, atol=1e-5)


def test_blocks() -> None:
    for module, name in ((resnet_v1, "resnet_v1_block"), (resnet_v2, "resnet_v2_block")):
        block = getattr(module, name)("block1", 4, 3, 2)
        assert block.scope == "block1"
        assert block.unit_fn is module.bottleneck
        assert [unit["stride"] for unit in block.args] == [1, 1, 2]
        assert block.args[0] == {"depth": 16, "depth_bottleneck": 4, "stride": 1}


@pytest.mark.parametrize("version", [1, 2])
def test_dilated_units_give_the_subsampled_features(version: int) -> None:
    """With an output stride the features are denser: every second of them is the usual one."""
    module = (resnet_v1, resnet_v2)[version - 1]
    make_block, network = (getattr(module, f"resnet_v{version}{rest}") for rest in ("_block", ""))
    blocks = [make_block("block1", 1, 2, 2), make_block("block2", 2, 2, 1)]
    tf.set_random_seed(1)
    images = tf.constant(np.random.default_rng(0).normal(size=[1, 33, 33, 3]).astype(np.float32))
    options = {"global_pool": False, "is_training": False, "scope": "net"}
    with slim.arg_scope(resnet_utils.resnet_arg_scope()):
        dense, _ = network(images, blocks, output_stride=4, **options)
        usual, _ = network(images, blocks, reuse=True, **options)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run([resnet_utils.subsample(dense, 2), usual])
    np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-4)


def test_a_checkpoint_is_loaded_by_its_names(tmp_path: Path) -> None:
    """What one program saves under TensorFlow's names another one restores."""
    names = []
    for program in range(2):
        with tf.Graph().as_default(), tf.Session() as session:
            images = tf.ones([1, 32, 32, 3])
            with slim.arg_scope(resnet_utils.resnet_arg_scope()):
                blocks = [resnet_v1.resnet_v1_block("block1", 2, 1, 1)]
                net, _ = resnet_v1.resnet_v1(images, blocks, 3, is_training=False, scope="net")
            path = str(tmp_path / "model.ckpt")
            if program == 0:
                session.run(tf.global_variables_initializer())
                expected = session.run(net)
                tf.train.Saver().save(session, path)
                names = [name for name, _ in tf.train.list_variables(path)]
            else:
                slim.assign_from_checkpoint_fn(path, slim.get_model_variables())(session)
                np.testing.assert_array_equal(session.run(net), expected)
    assert "net/block1/unit_1/bottleneck_v1/conv2/BatchNorm/moving_variance" in names


def test_sizes_of_images() -> None:
    assert vgg.vgg_16.default_image_size == vgg.vgg_a.default_image_size == 224
    assert inception.inception_v3.default_image_size == 299
    assert nets.alexnet.alexnet_v2.default_image_size == 224
    assert nets.overfeat.overfeat.default_image_size == 231
    assert (vgg.vgg_d, vgg.vgg_e) == (vgg.vgg_16, vgg.vgg_19)


def test_scopes_of_arguments() -> None:
    scopes = [
        inception.inception_v1_arg_scope(use_batch_norm=False),
        inception.inception_v2_arg_scope(),
        inception.inception_v3_arg_scope(use_fused_batchnorm=False),
        nets.alexnet.alexnet_v2_arg_scope(),
        nets.overfeat.overfeat_arg_scope(),
        vgg.vgg_arg_scope(0.25),
    ]
    assert all(slim.arg_scope_func_key(slim.conv2d) in scope for scope in scopes)
    with slim.arg_scope(scopes[-1]):
        slim.conv2d(tf.ones([1, 4, 4, 1]), 2, [3, 3], scope="c", weights_initializer=tf.ones_initializer())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        (loss,) = session.run(tf.losses.get_regularization_losses())
    assert loss == pytest.approx(0.25 * 18 / 2)


def test_initial_values() -> None:
    with tf.Session() as session:
        values = session.run(nets.alexnet.trunc_normal(0.5)([10000]))
    assert np.abs(values).max() <= 1.0
    assert np.std(values) == pytest.approx(0.44, abs=0.02)
