"""cuDNN's layers compute what the compatible cells do on the saved parameters, whose names are TensorFlow
1.15's."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

cudnn = tf.contrib.cudnn_rnn
UNITS, STEPS, BATCH, DEPTH = 4, 5, 3, 2
X = np.random.RandomState(0).randn(STEPS, BATCH, DEPTH).astype("f")
LAYERS = {
    "CudnnLSTM": lambda: cudnn.CudnnCompatibleLSTMCell(UNITS),
    "CudnnGRU": lambda: cudnn.CudnnCompatibleGRUCell(UNITS),
    "CudnnRNNRelu": lambda: tf.contrib.rnn.BasicRNNCell(UNITS, activation=tf.nn.relu),
    "CudnnRNNTanh": lambda: tf.contrib.rnn.BasicRNNCell(UNITS),
}


def biased():
    return tf.random_uniform_initializer(-0.5, 0.5, seed=3)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_the_cells_compute_the_same_on_the_saved_parameters(kind: str, direction: str, tmp_path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        layer = getattr(cudnn, kind)(2, UNITS, direction=direction, bias_initializer=biased(), name="top")
        outputs, state = layer(tf.constant(X))
        gradient = tf.gradients(tf.reduce_sum(outputs**2), tf.trainable_variables())[0]
        session.run(tf.global_variables_initializer())
        expected, last, slope = session.run([outputs, state, gradient])
        path = tf.train.Saver([layer.saveable]).save(session, str(tmp_path / "model"))
        assert layer.saveable is tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)[0]
        assert layer.variables[0].op.name == "top/opaque_kernel"
    assert np.abs(slope).sum() > 0
    with tf.Graph().as_default(), tf.Session() as session, tf.variable_scope("top"):
        x = tf.constant(X)
        make = LAYERS[kind]
        if direction == "unidirectional":
            cells = tf.contrib.rnn.MultiRNNCell([make(), make()])
            found, _ = tf.nn.dynamic_rnn(cells, x, dtype=tf.float32, time_major=True)
        else:
            found, _, _ = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
                [make(), make()], [make(), make()], x, dtype=tf.float32, time_major=True
            )
        tf.train.Saver().restore(session, path)
        np.testing.assert_allclose(session.run(found), expected, rtol=1e-4, atol=1e-5)
    assert [each.shape for each in last] == [tuple(each) for each in layer.state_shape(BATCH)]


@pytest.mark.parametrize("kind", LAYERS)
def test_restored_parameters_give_the_same_outputs(kind: str, tmp_path) -> None:
    def build(seed: int) -> tuple:
        layer = getattr(cudnn, kind)(
            2, UNITS, kernel_initializer=tf.random_uniform_initializer(-1, 1, seed=seed), name="top"
        )
        outputs, _ = layer(tf.constant(X.transpose(1, 0, 2)), time_major=False, training=False)
        return tf.train.Saver([layer.saveable]), outputs

    with tf.Graph().as_default(), tf.Session() as session:
        saver, outputs = build(1)
        session.run(tf.global_variables_initializer())
        expected = session.run(outputs)
        path = saver.save(session, str(tmp_path / "model"))
    assert expected.shape == (BATCH, STEPS, UNITS)
    with tf.Graph().as_default(), tf.Session() as session:
        saver, outputs = build(2)
        session.run(tf.global_variables_initializer())
        assert not np.allclose(session.run(outputs), expected)
        saver.restore(session, path)
        np.testing.assert_allclose(session.run(outputs), expected, rtol=1e-5, atol=1e-6)


def test_names_and_shapes_are_those_of_tensorflow() -> None:
    with tf.Graph().as_default():
        lstm, gru = cudnn.CudnnLSTM(2, 4), cudnn.CudnnGRU(1, 4, direction="bidirectional")
        for layer in (lstm, gru):
            layer(tf.zeros([6, 3, 5]))
        assert lstm.canonical_weight_shapes == [(4, 5)] * 4 + [(4, 4)] * 12
        assert lstm.canonical_bias_shapes == [[4]] * 16
        assert (gru.num_dirs, gru.rnn_mode, gru.input_size, gru.input_mode) == (2, "gru", 5, "linear_input")
        cell = "cudnn_lstm/rnn/multi_rnn_cell/cell_{}/cudnn_compatible_lstm_cell/{}"
        expected = [cell.format(i, part) for part in ("kernel", "bias") for i in (0, 1)]
        assert [spec.name for spec in lstm.saveable.specs] == expected
        assert lstm.saveable.name == "cudnn_lstm/opaque_kernel_saveable"
        scope = "cudnn_gru/stack_bidirectional_rnn/cell_0/bidirectional_rnn"
        gates = scope + "/{}/cudnn_compatible_gru_cell/gates/{}"
        names = [spec.name for spec in gru.saveable.specs]
        assert [names[i] for i in (0, 3, 6, 9)] == [
            gates.format(way, part) for part in ("kernel", "bias") for way in ("fw", "bw")
        ]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: cudnn.CudnnLSTM(1, 2, direction="up"), ValueError),
        (lambda: cudnn.CudnnLSTM(1, 2, dropout=2.0), ValueError),
        (lambda: cudnn.CudnnLSTM(1, 2).input_size, ValueError),
        (lambda: cudnn.CudnnGRU(1, 2)(tf.zeros([2, 1, 3]), sequence_lengths=[2]), ValueError),
        (lambda: cudnn.CudnnGRU(1, 2)(tf.zeros([2, 3])), ValueError),
        (lambda: cudnn.CudnnParamsFormatConverterLSTM(1, 2, 3, num_proj=2), ValueError),
    ],
)
def test_refuses(make, error: type[Exception]) -> None:
    with tf.Graph().as_default(), pytest.raises(error):
        make()


@pytest.mark.parametrize("kind", LAYERS)
def test_models_with_given_parameters_compute_what_the_layers_do(kind: str) -> None:
    model = getattr(cudnn.python.ops.cudnn_rnn_ops, kind)(2, UNITS, DEPTH)
    with tf.Graph().as_default(), tf.Session() as session:
        layer = getattr(cudnn, kind)(2, UNITS, bias_initializer=biased())
        expected, _ = layer(tf.constant(X))
        session.run(tf.global_variables_initializer())
        weights, biases = model.params_to_canonical(layer.kernel)
        assert [each.shape.as_list() for each in weights] == [list(s) for s in layer.canonical_weight_shapes]
        params = model.canonical_to_params(weights, biases)
        states = [tf.zeros([2, BATCH, UNITS])] * (2 if kind == "CudnnLSTM" else 1)
        outputs = model(tf.constant(X), *states, params, is_training=False)
        got, wanted, size = session.run([outputs[0], expected, model.params_size()])
        assert size == layer.kernel.shape[0].value
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
