"""`tf.contrib.gan.features`: names, shapes and values that TensorFlow 1.4.1 gave for the same programs."""

import numpy as np
import pytest

import flowstone as tf

features = tf.contrib.gan.features


def _variables():
    return {variable.op.name: variable.shape.as_list() for variable in tf.global_variables()}


def test_tensors_are_conditioned():
    with tf.Graph().as_default():
        conditioned = features.condition_tensor(tf.ones([3, 4, 5]), tf.ones([3, 7]))
        assert conditioned.shape.as_list() == [3, 4, 5]
        assert _variables() == {"fully_connected/weights": [7, 20], "fully_connected/biases": [20]}
    with tf.Graph().as_default():
        labels = tf.one_hot([0, 1, 2], 4)
        assert features.condition_tensor_from_onehot(tf.ones([3, 4, 5]), labels, 6).shape.as_list() == [
            3,
            4,
            5,
        ]
        assert _variables() == {
            "embedding": [4, 6],
            "fully_connected/weights": [6, 20],
            "fully_connected/biases": [20],
        }


def test_conditions_need_shapes():
    with tf.Graph().as_default():
        with pytest.raises(ValueError):
            features.condition_tensor(tf.placeholder(tf.float32, [None, None]), tf.ones([3, 2]))
        with pytest.raises(ValueError):
            features.condition_tensor(tf.ones([3, 2]), tf.ones([3]))
        with pytest.raises(ValueError):
            features.condition_tensor_from_onehot(tf.ones([3, 2]), tf.ones([3]))


@pytest.mark.parametrize("shape", [[2], [2, 3]])
def test_variables_are_clipped_after_a_step(shape):
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", shape, initializer=tf.constant_initializer(3.0))
        optimizer = features.clip_variables(tf.train.GradientDescentOptimizer(0.1), [variable], 0.5)
        step = optimizer.minimize(tf.reduce_sum(variable * variable))
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(variable).tolist() == np.full(shape, 0.5).tolist()
        with pytest.raises(ValueError):
            features.clip_variables(optimizer, [variable], -1)


def test_the_discriminators_weights_are_clipped():
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.contrib.gan.gan_model(
            lambda x: tf.layers.dense(x, 3),
            lambda x, _: tf.layers.dense(x, 1),
            tf.ones([4, 3]),
            tf.ones([4, 2]),
        )
        optimizer = features.clip_discriminator_weights(tf.train.GradientDescentOptimizer(9.0), model, 0.01)
        step = optimizer.minimize(
            tf.reduce_sum(model.discriminator_real_outputs), var_list=model.discriminator_variables
        )
        session.run(tf.global_variables_initializer())
        session.run(step)
        for variable in session.run(list(model.discriminator_variables)):
            assert np.abs(variable).max() <= 0.01 + 1e-6


def test_virtual_batch_normalisation():
    with tf.Graph().as_default(), tf.Session() as session:
        reference = tf.constant(np.arange(24).reshape(4, 2, 3), tf.float32)
        norm = features.VBN(reference)
        of_reference = norm.reference_batch_normalization()
        result = norm(tf.constant(np.arange(12).reshape(2, 2, 3) + 1, tf.float32))
        assert (of_reference.op.name, result.op.name) == ("VBN_1/batchnorm/add_1", "VBN_2/batchnorm/add_1")
        assert _variables() == {"VBN/beta": [3], "VBN/gamma": [3]}
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(of_reference)[0], [[-1.5275] * 3, [-1.0911] * 3], atol=2e-4)
        expected = [[[-1.1345] * 3, [-0.7037] * 3], [[-0.4971] * 3, [-0.0160] * 3]]
        np.testing.assert_allclose(session.run(result), expected, atol=2e-4)


def test_virtual_batch_normalisation_along_another_axis():
    with tf.Graph().as_default(), tf.Session() as session:
        values = np.arange(24).reshape(4, 2, 3).astype(np.float32)
        norm = features.VBN(tf.constant(values), axis=1, center=False, scale=False, name="q", epsilon=0.0)
        assert not tf.global_variables()
        found = session.run(norm.reference_batch_normalization())
        mean, deviation = values.mean((0, 2), keepdims=True), values.std((0, 2), keepdims=True)
        np.testing.assert_allclose(found, (values - mean) / deviation, rtol=1e-4)


def test_axes_of_virtual_batch_normalisation():
    with tf.Graph().as_default():
        for arguments in ({"axis": 0}, {"axis": 5}, {"batch_axis": 1}):
            with pytest.raises(ValueError):
                features.VBN(tf.ones([2, 3]), **arguments)
        with pytest.raises(ValueError):
            features.VBN(tf.placeholder(tf.float32, [2, None]))
        with pytest.raises(ValueError):
            features.VBN(tf.ones([2, 3]))(tf.ones([2, 4]))


def test_tensorflows_modules_have_the_names():
    python = tf.contrib.gan.python
    assert python.features.python.virtual_batchnorm_impl.VBN is features.VBN
    assert (
        python.eval.python.summaries_impl.add_gan_model_summaries
        is tf.contrib.gan.eval.add_gan_model_summaries
    )
    assert python.estimator.python.head_impl.gan_head is tf.contrib.gan.estimator.gan_head
