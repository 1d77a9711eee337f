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


def cells(tf: Any) -> Any:
    layers = tf.keras.layers

    class Sum(layers.AbstractRNNCell):  # type: ignore[misc, name-defined]
        state_size = 3
        output_size = 3

        def build(self, shape: Any) -> None:
            self.kernel = self.add_weight("kernel", (shape[-1], 3), initializer="ones")
            self.built = True

        def call(self, inputs: Any, states: Any) -> Any:
            found = tf.matmul(inputs, self.kernel) + 0.5 * states[0]
            return found, [found]

    x = tf.keras.Input((4, 2))
    peephole = tf.keras.experimental.PeepholeLSTMCell
    made = [
        layers.RNN(Sum())(x),
        layers.RNN([Sum(), Sum()], return_sequences=True)(x),
        layers.RNN(peephole(2), return_sequences=True)(x),
        layers.RNN(peephole(2, use_bias=False, implementation=2))(x),
    ]
    model = tf.keras.Model(x, made)
    set_weights(model)
    given = [layers.GRUCell(2), layers.LSTMCell(3), layers.StackedRNNCells([layers.LSTMCell(2), Sum()])]
    states = [cell.get_initial_state(batch_size=2, dtype=tf.float32) for cell in given]
    shapes = [[state.shape.as_list() for state in tf.nest.flatten(each)] for each in states]
    return [model.predict(inputs(2, 4, 2)), [weight.name for weight in model.weights], shapes]


def ready_made_models(tf: Any) -> Any:
    experimental, layers = tf.keras.experimental, tf.keras.layers
    linear = experimental.LinearModel(2, activation="relu", kernel_initializer="ones")
    deep = tf.keras.Sequential(
        [layers.Dense(3, kernel_initializer="ones"), layers.Dense(2, kernel_initializer="ones")]
    )
    both = experimental.WideDeepModel(linear, deep, activation="tanh")
    both.compile(["sgd", "adam"], "mse")
    x = inputs(4, 3)
    history = both.fit([x, x], np.ones((4, 2)), epochs=2, verbose=0, shuffle=False)
    again = type(both).from_config(both.get_config()).get_config()
    alone = experimental.LinearModel(kernel_initializer="ones", use_bias=False)
    return [
        history.history["loss"],
        both.predict([x, x]),
        [weight.name for weight in both.weights],
        sorted(again),
        tf.keras.backend.eval(alone([tf.constant(x), tf.constant(x[:, :1])])),
    ]


def schedules_and_constraints(tf: Any) -> Any:
    experimental, schedules = tf.keras.experimental, tf.keras.optimizers.schedules
    made = [
        experimental.CosineDecay(0.1, 10, alpha=0.2),
        experimental.CosineDecayRestarts(0.1, 4, 2.0, 0.9, 0.1),
        experimental.LinearCosineDecay(0.1, 10),
        experimental.NoisyLinearCosineDecay(0.1, 10, initial_variance=0.0),
    ]
    values = [[tf.keras.backend.eval(each(tf.constant(i))) for i in (0, 3, 7, 12)] for each in made]
    texts = [schedules.serialize(schedules.deserialize(schedules.serialize(each))) for each in made]
    constraint = tf.keras.constraints.get("RadialConstraint")
    kernels = [tf.constant(inputs(size, size, 2, 2)) for size in (3, 5, 7)]
    return [values, texts, [tf.keras.backend.eval(constraint(kernel)) for kernel in kernels]]


def layers_of_graphs_in_a_model(tf: Any) -> Any:
    class Net(tf.keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            ones = tf.ones_initializer()
            self.one = tf.layers.Dense(4, activation=tf.nn.relu, kernel_initializer=ones)
            self.norm = tf.layers.BatchNormalization()
            self.drop = tf.layers.Dropout(0.5)
            self.two = tf.layers.Dense(2, kernel_initializer=ones)

        def call(self, x: Any, training: Any = False) -> Any:
            x = self.drop(self.norm(self.one(x), training=training), training=training)
            return self.two(x)

    net = Net()
    y = net(tf.constant(inputs(2, 3)))
    names = [[v.name for v in found] for found in (net.variables, net.trainable_variables)]
    kinds = [type(v).__name__ for v in net.variables]
    return [tf.keras.backend.eval(y), names, len(set(kinds)), [layer.name for layer in net.layers]]


def data_before_shapes(tf: Any) -> Any:
    layers, column = tf.keras.layers, tf.feature_column
    columns = [
        column.numeric_column("a"),
        column.indicator_column(column.categorical_column_with_identity("c", 3)),
    ]
    data = {"a": np.arange(6.0, dtype="float32"), "c": np.arange(6) % 3}
    found = []
    for source in ("arrays", "dataset"):
        model = tf.keras.Sequential(
            [layers.DenseFeatures(columns), layers.Dense(1, kernel_initializer="ones")]
        )
        model.compile("sgd", "mse", metrics=["mae"])
        if source == "arrays":
            history = model.fit(data, np.arange(6.0), batch_size=3, shuffle=False, epochs=2, verbose=0)
        else:
            dataset = tf.data.Dataset.from_tensor_slices((data, np.arange(6.0, dtype="float32")))
            history = model.fit(dataset.batch(3).repeat(), steps_per_epoch=2, epochs=2, verbose=0)
        found += [history.history["loss"], [weight.name for weight in model.weights]]
    scalar = tf.keras.Input((), dtype="int32")
    embedded = layers.Embedding(5, 2, embeddings_initializer="ones")(scalar)
    model = tf.keras.Model(scalar, layers.Dense(1, kernel_initializer="ones")(embedded))
    model.compile("sgd", "mse")
    history = model.fit(np.arange(4), np.ones(4), verbose=0)
    found += [history.history["loss"], model.predict(np.arange(3))]
    doubled = tf.keras.Model(scalar, layers.Lambda(lambda t: t * 2)(scalar))
    deferred = tf.keras.Sequential([layers.Dense(2, kernel_initializer="ones")])
    deferred.compile("sgd", "mse", metrics=["mae"])
    deferred.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    kinds = [type(v).__name__ for v in deferred.evaluate(np.ones((4, 3)), np.ones((4, 2)), verbose=0)]
    return [*found, doubled.predict(np.arange(3)), [w.name for w in deferred.weights], kinds]


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
    cells,
    ready_made_models,
    schedules_and_constraints,
    layers_of_graphs_in_a_model,
    data_before_shapes,
]


def result(tf: Any, case: Any) -> Any:
    """What a case gives, as JSON has it."""
    tf.keras.backend.clear_session()
    return plain(case(tf))


if __name__ == "__main__":
    import tensorflow

    found = {case.__name__: result(tensorflow, case) for case in CASES}
    TARGET.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
