"""What `tf.keras` of TensorFlow 1.15 computes and says: tests/golden/keras/tf_keras.json.

    python tests/golden/make_tf_keras_goldens.py     # with TensorFlow 1.15

`CASES` are functions of the module tensorflow; tests/keras/extensions/test_cases.py runs them over flowstone.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).parent / "keras" / "tf_keras.json"


def plain(value: Any) -> Any:
    """A value as JSON has it, numbers to six digits."""
    if isinstance(value, dict):
        return {str(key): plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (bool, str, int, type(None))):
        return value
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.6g}")
    return value.as_list() if hasattr(value, "as_list") else int(value)


def set_weights(model: Any, seed: int = 1) -> None:
    draw = np.random.RandomState(seed)
    shapes = [weight.shape for weight in model.get_weights()]
    model.set_weights([abs(draw.randn(*shape)).astype("f") * 0.3 for shape in shapes])


def inputs(*shape: int) -> Any:
    return np.random.RandomState(0).randn(*shape).astype("f")


def trained(tf: Any, optimizer: Any) -> Any:
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(4,))])
    set_weights(model)
    model.compile(optimizer, "mse")
    x = inputs(8, 4)
    model.fit(x, x[:, :3], batch_size=4, epochs=3, verbose=0, shuffle=False)
    return [model.get_weights(), optimizer.get_config(), [weight.name for weight in optimizer.weights]]


def optimizers(tf: Any) -> Any:
    kinds = tf.keras.optimizers
    made = [
        kinds.SGD(0.1),
        kinds.SGD(0.1, momentum=0.9, nesterov=True),
        kinds.SGD(lr=0.3, decay=0.1, clipnorm=0.5),
        kinds.SGD(kinds.schedules.ExponentialDecay(0.1, 2, 0.5)),
        kinds.SGD(kinds.schedules.PiecewiseConstantDecay([2, 4], [0.3, 0.2, 0.1])),
        kinds.Adam(0.1, amsgrad=True),
        kinds.Adam(0.01, clipvalue=0.01),
        kinds.RMSprop(0.1),
        kinds.RMSprop(0.1, momentum=0.9, centered=True),
        kinds.Adagrad(0.1),
        kinds.Adadelta(1.0),
        kinds.Adamax(0.1),
        kinds.Nadam(0.1),
        kinds.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.01),
        kinds.Ftrl(0.1, l2_shrinkage_regularization_strength=0.1),
    ]
    found = []
    for optimizer in made:
        tf.keras.backend.clear_session()
        config = optimizer.get_config()
        found.append(trained(tf, type(optimizer).from_config(config)))
    return found


def sparse_gradients(tf: Any) -> Any:
    kinds, found = tf.keras.optimizers, []
    for name in ("SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl"):
        tf.keras.backend.clear_session()
        layers = tf.keras.layers
        model = tf.keras.Sequential(
            [layers.Embedding(6, 2, input_length=3), layers.Flatten(), layers.Dense(1)]
        )
        set_weights(model)
        model.compile(getattr(kinds, name)(0.1), "mse")
        rows = np.array([[0, 1, 1], [4, 0, 1]])
        model.fit(rows, np.ones((2, 1)), epochs=3, verbose=0)
        found.append(model.get_weights())
    return found


def names_and_configurations(tf: Any) -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Embedding(10, 4, input_length=5),
            layers.LSTM(3, return_sequences=True),
            layers.Bidirectional(layers.GRU(2)),
            layers.LayerNormalization(),
            layers.BatchNormalization(),
            layers.Dense(2, kernel_regularizer="l2"),
            layers.Dense(1, "sigmoid"),
        ]
    )
    text = io.StringIO()
    model.summary(print_fn=lambda line: text.write(line + "\n"))
    set_weights(model)
    outputs = model.predict(np.arange(10).reshape(2, 5))
    weights = [weight.name for weight in model.weights]
    return [text.getvalue(), weights, [layer.get_config() for layer in model.layers], outputs]


def recurrent(tf: Any) -> Any:
    layers, found = tf.keras.layers, []
    for layer in (
        layers.GRU(2),
        layers.GRU(2, reset_after=True),
        layers.LSTM(2, implementation=2),
        layers.LSTM(2, return_sequences=True, time_major=True),
        layers.SimpleRNN(2),
        layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)]),
    ):
        tf.keras.backend.clear_session()
        model = tf.keras.Sequential([layer])
        model.build((2, 4, 3))
        set_weights(model)
        found.append(model.predict(inputs(2, 4, 3), batch_size=2))
    return found


def batch_normalization(tf: Any) -> Any:
    found = []
    for shape in ((8,), (4, 4, 2)):
        tf.keras.backend.clear_session()
        layer = tf.keras.layers.BatchNormalization(momentum=0.9, input_shape=shape)
        model = tf.keras.Sequential([layer])
        model.compile("sgd", "mse")
        x = inputs(16, *shape) * 2 + 1
        model.fit(x, x, batch_size=8, epochs=3, verbose=0, shuffle=False)
        found += [model.get_weights(), model.evaluate(x, x, verbose=0), len(model.updates)]
    return found


def a_layer_of_a_program(tf: Any) -> Any:
    class Scaled(tf.keras.layers.Layer):
        def __init__(self, units: int, **keywords: Any) -> None:
            super().__init__(activity_regularizer=tf.keras.regularizers.l2(0.1), **keywords)
            self.units = units
            self.inner = [tf.keras.layers.Dense(units)]

        def build(self, input_shape: Any) -> None:
            shape = [input_shape[-1].value, self.units]
            self.scale = self.add_weight("scale", shape, tf.float32, "ones", tf.keras.regularizers.l1(0.1))
            self.step = self.add_weight("step", shape=(), dtype=tf.int64, trainable=False)

        def call(self, x: Any, training: Any = None) -> Any:
            return self.inner[0](tf.matmul(x, self.scale))

        def get_config(self) -> Any:
            return {**super().get_config(), "units": self.units}

    entry = tf.keras.Input((3,))
    layer = Scaled(2, name="own")
    outputs = layer(entry) * 2.0 + 1.0
    model = tf.keras.Model(entry, outputs)
    model.compile("sgd", "mse")
    layer.inner[0].set_weights([np.ones((2, 2)), np.zeros(2)])
    loss = model.evaluate(np.ones((4, 3)), np.zeros((4, 2)), verbose=0)
    names = [weight.name for weight in model.weights]
    kinds = [type(each).__name__ for each in model.layers]
    return [loss, layer.get_config(), names, kinds, len(model.losses), len(model.trainable_weights)]


def a_model_of_a_program(tf: Any) -> Any:
    class Classifier(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first = tf.keras.layers.Dense(4, activation="relu")
            self.normal = tf.keras.layers.BatchNormalization()
            self.more = [tf.keras.layers.Dense(4) for _ in range(2)]
            self.last = tf.keras.layers.Dense(3, activation="softmax")

        def call(self, x: Any, training: Any = None) -> Any:
            x = self.normal(self.first(x), training=training)
            for layer in self.more:
                x = layer(x)
            return self.last(x)

    model = Classifier()
    model.compile(
        tf.keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy", "mae"]
    )
    model.build((None, 8))
    set_weights(model)
    classes = np.random.RandomState(0).randint(0, 3, 32)
    history = model.fit(inputs(32, 8), classes, batch_size=8, epochs=2, verbose=0, shuffle=False).history
    names = [layer.name for layer in model.layers]
    return [history, names, len(model.weights), model.predict(inputs(2, 8))]


def losses_and_metrics(tf: Any) -> Any:
    true, predicted = np.array([[0.0, 1.0], [1.0, 0.0]], "f"), np.array([[0.3, 0.7], [0.6, 0.4]], "f")
    found: Any = {}
    for name in ("cosine_similarity", "categorical_crossentropy", "logcosh", "poisson"):
        function = getattr(tf.keras.losses, name)
        found[name] = function(tf.constant(true), tf.constant(predicted))
    for name in ("CosineSimilarity", "BinaryCrossentropy", "Huber", "MeanSquaredError"):
        loss = getattr(tf.keras.losses, name)()
        found[name] = loss(tf.constant(true), tf.constant(predicted), sample_weight=[0.5, 1.0])
        found[name + " configuration"] = loss.get_config()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = {k: session.run(v) if isinstance(v, tf.Tensor) else v for k, v in found.items()}
        metrics = tf.keras.metrics
        for metric in (
            metrics.MeanIoU(2),
            metrics.MeanRelativeError([[1.0, 2.0], [1.0, 2.0]]),
            metrics.MeanTensor(),
            metrics.AUC(num_thresholds=5),
            metrics.CosineSimilarity(),
        ):
            is_mean = isinstance(metric, metrics.MeanTensor)
            update = metric.update_state(predicted) if is_mean else metric.update_state(true, predicted)
            session.run([variable.initializer for variable in metric.variables])
            session.run(update)
            found[metric.name] = [session.run(metric.result()), metric.get_config()]
    return found


def attention(tf: Any) -> Any:
    layers = tf.keras.layers
    query, value = layers.Input((3, 4)), layers.Input((5, 4))
    kinds = [layers.Attention(), layers.Attention(use_scale=True), layers.AdditiveAttention(causal=True)]
    model = tf.keras.Model([query, value], [layer([query, value]) for layer in kinds])
    model.set_weights([np.float32(0.5), np.float32([0.1, 0.2, 0.3, 0.4])])
    outputs = model.predict([inputs(2, 3, 4), inputs(2, 5, 4)])
    return [outputs, [weight.name for weight in model.weights], [layer.get_config() for layer in kinds]]


def feature_columns(tf: Any) -> Any:
    made, layers = tf.feature_column, tf.keras.layers
    table = made.embedding_column(made.categorical_column_with_identity("c", 5), 2)
    entries = {"a": layers.Input((1,), name="a"), "c": layers.Input((1,), name="c", dtype="int64")}
    features = layers.DenseFeatures([made.numeric_column("a"), table])(entries)
    model = tf.keras.Model(list(entries.values()), layers.Dense(1)(features))
    set_weights(model)
    model.compile("sgd", "mse")
    data = {"a": np.arange(4.0).reshape(4, 1), "c": np.arange(4).reshape(4, 1)}
    history = model.fit(data, np.ones((4, 1)), epochs=2, verbose=0, shuffle=False).history
    return [history, model.predict(data), [weight.name for weight in model.weights]]


def flattened(tf: Any) -> Any:
    model = tf.keras.Sequential([tf.keras.layers.Flatten(input_shape=(4,)), tf.keras.layers.Dense(2)])
    set_weights(model)
    return [model.predict(np.ones((2, 4))), model.layers[0].output_shape]


CASES = [
    optimizers,
    sparse_gradients,
    names_and_configurations,
    recurrent,
    batch_normalization,
    a_layer_of_a_program,
    a_model_of_a_program,
    losses_and_metrics,
    flattened,
    attention,
    feature_columns,
]


def result(tf: Any, case: Any) -> Any:
    """What a case gives, as JSON has it."""
    tf.keras.backend.clear_session()
    return plain(case(tf))


if __name__ == "__main__":
    import tensorflow

    found = {case.__name__: result(tensorflow, case) for case in CASES}
    TARGET.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
