"""`tf.contrib.gan`: losses and names as TensorFlow 1.4.1 gave them for the same numbers, and training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

gan = tf.contrib.gan
wargs = gan.losses.wargs
_random = np.random.RandomState(0)
REAL, FAKE = (_random.randn(4, 3).astype("f") for _ in range(2))
LABELS = np.eye(3, dtype="f")[[0, 1, 2, 0]]


@pytest.fixture(autouse=True)
def _new_graph() -> None:
    tf.reset_default_graph()


def _value(tensor: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor)


def _normals() -> list[Any]:
    return [tf.distributions.Normal(np.zeros([4, 3], "f"), np.ones([4, 3], "f")) for _ in range(2)]


# TensorFlow 1.4.1's value, name of the loss, and names in the collections of losses and of summaries.
@pytest.mark.parametrize(
    ("make", "value", "name", "losses", "summaries"),
    [
        (
            lambda: wargs.wasserstein_generator_loss(FAKE, add_summaries=True),
            -0.052586954,
            "generator_wasserstein_loss/value:0",
            ["generator_wasserstein_loss/value:0"],
            ["generator_wasserstein_loss/generator_wass_loss:0"],
        ),
        (
            lambda: wargs.wasserstein_discriminator_loss(REAL, FAKE, real_weights=2.0),
            -1.4438379,
            "discriminator_wasserstein_loss/sub:0",
            ["discriminator_wasserstein_loss/sub:0"],
            [],
        ),
        (
            lambda: wargs.minimax_generator_loss(tf.constant(FAKE), label_smoothing=0.25, add_summaries=True),
            -1.2695342,
            "generator_minimax_loss/Neg:0",
            ["generator_minimax_loss/add_1:0"],
            ["generator_minimax_loss_1:0"],
        ),
        (
            lambda: wargs.minimax_discriminator_loss(
                tf.constant(REAL), tf.constant(FAKE), add_summaries=True
            ),
            1.4013567,
            "discriminator_minimax_loss/add_1:0",
            ["discriminator_minimax_loss/add_1:0"],
            [
                "discriminator_minimax_loss/discriminator_gen_minimax_loss:0",
                "discriminator_minimax_loss/discriminator_real_minimax_loss:0",
                "discriminator_minimax_loss/discriminator_minimax_loss:0",
            ],
        ),
        (
            lambda: wargs.modified_generator_loss(tf.constant(FAKE), label_smoothing=0.1, add_summaries=True),
            0.78131485,
            "generator_modified_loss/value:0",
            ["generator_modified_loss/value:0"],
            ["generator_modified_loss_1:0"],
        ),
        (
            lambda: wargs.modified_discriminator_loss(tf.constant(REAL), tf.constant(FAKE)),
            1.4013567,
            "discriminator_modified_loss/add_1:0",
            ["discriminator_modified_loss/add_1:0"],
            [],
        ),
        (
            lambda: wargs.least_squares_generator_loss(FAKE, add_summaries=True),
            0.957714,
            "lsq_generator_loss/value:0",
            ["lsq_generator_loss/value:0"],
            ["generator_lsq_loss:0"],
        ),
        (
            lambda: wargs.least_squares_discriminator_loss(REAL, FAKE, add_summaries=True),
            0.9677079,
            "lsq_discriminator_loss/add:0",
            ["lsq_discriminator_loss/add:0"],
            ["discriminator_gen_lsq_loss:0", "discriminator_real_lsq_loss:0", "discriminator_lsq_loss:0"],
        ),
        (
            lambda: wargs.acgan_generator_loss(tf.constant(FAKE), LABELS, add_summaries=True),
            1.3262911,
            "softmax_cross_entropy_loss/value:0",
            ["softmax_cross_entropy_loss/value:0"],
            ["generator_ac_loss:0"],
        ),
        (
            lambda: wargs.acgan_discriminator_loss(
                tf.constant(REAL), tf.constant(FAKE), LABELS, label_smoothing=0.1
            ),
            2.48947,
            "add:0",
            ["add:0"],
            [],
        ),
        (
            lambda: wargs.mutual_information_penalty([REAL, FAKE], _normals(), add_summaries=True),
            1.5268986,
            "mul:0",
            ["generator_modified_loss/value:0"],
            ["mutual_information_penalty:0"],
        ),
    ],
)
def test_losses(make: Any, value: float, name: str, losses: list[str], summaries: list[str]) -> None:
    loss = make()
    assert loss.name == name
    assert [each.name for each in tf.get_collection("losses")] == losses
    assert [each.name for each in tf.get_collection("summaries")] == summaries
    np.testing.assert_allclose(_value(loss), value, rtol=2e-6)


def _discriminator(x: Any, inputs: Any) -> Any:
    return tf.reduce_sum(x * tf.get_variable("w", [3], initializer=tf.ones_initializer()), 1, keep_dims=True)


def _model() -> Any:
    return gan.gan_model(lambda z: tf.layers.dense(z, 3, name="g"), _discriminator, REAL, FAKE)


def test_the_gradient_penalty_of_a_linear_discriminator() -> None:
    with tf.variable_scope("D") as scope:
        _discriminator(REAL, None)
    penalty = wargs.wasserstein_gradient_penalty(REAL, FAKE, None, _discriminator, scope)
    np.testing.assert_allclose(_value(penalty), (np.sqrt(3) - 1) ** 2, rtol=1e-5)
    assert penalty.name == "weighted_loss/value:0"


@pytest.mark.parametrize(
    ("arguments", "expected"), [({"weight_factor": 0.5}, 7.5), ({"gradient_ratio": 0.5}, 15)]
)
def test_adversarial_losses_are_weighted(arguments: Any, expected: float) -> None:
    x = tf.get_variable("x", [3], initializer=tf.ones_initializer())
    loss = wargs.combine_adversarial_loss(
        tf.reduce_sum(x * x), tf.reduce_sum(x * 3.0), variables=[x], **arguments
    )
    np.testing.assert_allclose(_value(loss), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="cannot both be"):
        wargs.combine_adversarial_loss(x, x)
    model = _model()
    losses = gan.gan_loss(model)
    combined = gan.losses.combine_adversarial_loss(
        losses, model, tf.reduce_sum(model.generated_data), **arguments
    )
    assert isinstance(combined, gan.GANLoss)
    assert combined.generator_loss is not losses.generator_loss


def test_models_have_their_variables_and_losses() -> None:
    model = _model()
    assert isinstance(model, gan.GANModel)
    assert [each.name for each in model.generator_variables] == ["Generator/g/kernel:0", "Generator/g/bias:0"]
    assert [each.name for each in model.discriminator_variables] == ["Discriminator/w:0"]
    losses = gan.gan_loss(
        model,
        gan.losses.minimax_generator_loss,
        gan.losses.minimax_discriminator_loss,
        gradient_penalty_weight=1.0,
    )
    assert len(tf.get_collection("losses")) == 3
    assert np.isfinite(_value(list(losses))).all()
    assert gan.losses.wasserstein_generator_loss(model).shape.as_list() == []
    with pytest.raises(ValueError, match="comes from the model"):
        gan.losses.wasserstein_generator_loss(model, discriminator_gen_outputs=3)


def test_models_with_codes_and_classes() -> None:
    def with_codes(x: Any, inputs: Any) -> Any:
        return _discriminator(x, inputs), [tf.distributions.Normal(tf.layers.dense(x, 1, name="q"), 1.0)]

    def with_classes(x: Any, inputs: Any) -> Any:
        return _discriminator(x, inputs), tf.layers.dense(x, 3, name="c")

    model = gan.infogan_model(
        lambda z: tf.layers.dense(tf.concat(z, 1), 3), with_codes, REAL, [FAKE], [FAKE[:, :1]], "A", "B"
    )
    assert isinstance(model, gan.InfoGANModel)
    losses = gan.gan_loss(model, mutual_information_penalty_weight=0.5, gradient_penalty_weight=1.0)
    assert np.isfinite(_value(list(losses))).all()
    model = gan.acgan_model(lambda z: tf.layers.dense(z, 3), with_classes, REAL, FAKE, LABELS, "C", "D")
    assert isinstance(model, gan.ACGANModel)
    losses = gan.gan_loss(model, aux_cond_generator_weight=0.5, aux_cond_discriminator_weight=0.3)
    assert np.isfinite(_value(list(losses))).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mutual_information_penalty_weight": 0.5}, "InfoGANModel"),
        ({"aux_cond_generator_weight": 0.5}, "ACGANModel"),
        ({"gradient_penalty_weight": -1}, "greater than 0"),
    ],
)
def test_weights_must_fit_the_model(arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gan.gan_loss(_model(), **arguments)


def test_generated_data_has_the_shape_of_real_data() -> None:
    with pytest.raises(ValueError, match="same shape as real data"):
        gan.gan_model(lambda z: z[:, :2], lambda x, z: tf.reduce_sum(x), REAL, FAKE)


@pytest.mark.parametrize("make", ["get_sequential_train_hooks", "get_joint_train_hooks"])
def test_training_runs_each_part_its_number_of_times(make: str, tmp_path: Any) -> None:
    model = _model()
    counts = [tf.get_variable(name, [], tf.int32, tf.zeros_initializer()) for name in ("first", "second")]
    for scope, count in zip((model.generator_scope, model.discriminator_scope), counts, strict=True):
        with tf.name_scope(scope.original_name_scope):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, count.assign_add(1).op)
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    ops = gan.gan_train_ops(model, gan.gan_loss(model), optimizer, optimizer)
    assert ops.generator_train_op.name == "generator_train/train_op/control_dependency:0"
    hooks = getattr(gan, make)(gan.GANTrainSteps(2, 3))
    stop = tf.train.StopAtStepHook(num_steps=3)
    assert gan.gan_train(ops, str(tmp_path), hooks, hooks=[stop]) == 3
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_tensor("first") == 6
    assert reader.get_tensor("second") == 9


def test_steps_for_a_training_loop() -> None:
    model = _model()
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    ops = gan.gan_train_ops(model, gan.gan_loss(model), optimizer, optimizer)
    steps = gan.get_sequential_train_steps(gan.GANTrainSteps(2, 1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        step = tf.train.get_global_step()
        total, stop = steps(session, ops, step, {"should_stop": tf.constant(True)})
        assert np.isfinite(total)
        assert stop
        assert session.run(step) == 1
    assert isinstance(ops, gan.GANTrainOps)


def test_update_operations_of_neither_part_are_refused() -> None:
    model = _model()
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op("other"))
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    with pytest.raises(ValueError, match="unused update ops"):
        gan.gan_train_ops(model, gan.gan_loss(model), optimizer, optimizer)
