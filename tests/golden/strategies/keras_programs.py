"""Programs of `tf.keras` of TensorFlow 1.15 that train models on two replicas; as those of `programs`."""

import os

import numpy as np

from programs import DEVICES, config, listed  # noqa: F401 - `listed` is for who runs the programs

DRAW = np.random.RandomState(0)
X = DRAW.randn(18, 3).astype("float32")
Y = (X.sum(1, keepdims=True) > 0).astype("float32")
WEIGHTS = DRAW.uniform(0.2, 2, 18).astype("float32")


def new_session(tf):
    tf.keras.backend.clear_session()
    tf.keras.backend.set_session(tf.Session(config=config(tf)))


def strategy(tf):
    return tf.distribute.MirroredStrategy(DEVICES)


def first(tf, rows, columns):
    values = np.linspace(-1, 1, rows * columns).reshape(rows, columns)
    return tf.constant_initializer(values.astype("float32"))


def model(tf, **options):
    layers = tf.keras.layers
    hidden = layers.Dense(
        4, activation="tanh", kernel_initializer=first(tf, 3, 4), input_shape=(3,), **options
    )
    return tf.keras.Sequential(
        [hidden, layers.Dense(1, activation="sigmoid", kernel_initializer=first(tf, 4, 1))]
    )


def numbers(logs):
    return {key: [float(each) for each in values] for key, values in logs.items()}


def fitted(model, *arguments, **options):
    return numbers(model.fit(*arguments, verbose=0, shuffle=False, **options).history)


def arrays(tf, folder):
    new_session(tf)
    recorded = []

    class Recorder(tf.keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            recorded.append({key: float(value) for key, value in logs.items()})

    with strategy(tf).scope():
        made = model(tf)
        made.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    found = {"fit": fitted(made, X, Y, batch_size=4, callbacks=[Recorder()])}
    return {**found, "batches": recorded}


def regularized(tf, folder):
    new_session(tf)
    l2 = tf.keras.regularizers.l2
    with strategy(tf).scope():
        made = model(tf, kernel_regularizer=l2(0.01), activity_regularizer=l2(0.02))
        made.compile("sgd", "mse", metrics=["mae"])
    found = {"weighted": fitted(made, X, Y, sample_weight=WEIGHTS, batch_size=6, epochs=2)}
    found["evaluate"] = made.evaluate(X, Y, sample_weight=WEIGHTS, batch_size=6, verbose=0)
    found["weights"] = [each.ravel() for each in made.get_weights()]
    held_out = (X[12:], Y[12:], WEIGHTS[12:])
    found["validated"] = fitted(made, X[:12], Y[:12], validation_data=held_out[:2], batch_size=6, epochs=2)
    found["validated_by_weight"] = fitted(made, X[:12], Y[:12], validation_data=held_out, batch_size=6)
    return found


def several_outputs(tf, folder):
    new_session(tf)
    layers = tf.keras.layers
    with strategy(tf).scope():
        inputs = tf.keras.Input((3,))
        hidden = layers.Dense(4, activation="relu", kernel_initializer=first(tf, 3, 4))(inputs)
        a = layers.Dense(1, name="a", kernel_initializer=first(tf, 4, 1))(hidden)
        b = layers.Dense(2, name="b", activation="softmax", kernel_initializer=first(tf, 4, 2))(hidden)
        made = tf.keras.Model(inputs, [a, b])
        losses = ["mse", "sparse_categorical_crossentropy"]
        made.compile("adam", losses, metrics={"b": "accuracy", "a": ["mae"]}, loss_weights=[0.5, 2.0])
    targets = [X[:, :1], Y]
    found = {"names": made.metrics_names, "fit": fitted(made, X, targets, batch_size=6, epochs=2)}
    found["evaluate"] = made.evaluate(X, targets, batch_size=6, verbose=0)
    found["predict"] = [each.ravel() for each in made.predict(X, batch_size=6)]
    dataset = tf.data.Dataset.from_tensor_slices((X, tuple(targets))).batch(6)
    history = made.fit(dataset, epochs=1, verbose=0, steps_per_epoch=3).history
    return {**found, "dataset": numbers(history)}


def datasets(tf, folder):
    new_session(tf)
    with strategy(tf).scope():
        made = model(tf)
        made.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
    return {"fit": numbers(made.fit(dataset, epochs=2, verbose=0).history)}


def sums(tf, folder):
    new_session(tf)
    with strategy(tf).scope():
        made = model(tf)
        made.compile("sgd", tf.keras.losses.MeanSquaredError(reduction="sum"))
    found = {"fit": fitted(made, X, Y, batch_size=6, epochs=2)}
    return {**found, "evaluate": float(made.evaluate(X, Y, batch_size=6, verbose=0))}


def callbacks(tf, folder):
    new_session(tf)
    kinds = tf.keras.callbacks
    with strategy(tf).scope():
        made = model(tf)
        metrics = ["mae", tf.keras.metrics.AUC(), tf.keras.metrics.Precision(), "mse"]
        made.compile(tf.keras.optimizers.SGD(0.5, momentum=0.9), "mse", metrics=metrics)
    path = os.path.join(folder, "model.h5")
    used = [
        kinds.LearningRateScheduler(lambda epoch: 0.5 / (epoch + 1)),
        kinds.EarlyStopping("loss", patience=0, min_delta=0.01),
        kinds.ModelCheckpoint(path),
    ]
    found = {"fit": fitted(made, X, Y, batch_size=6, epochs=6, validation_data=(X, Y), callbacks=used)}
    found["names"] = [each.name for each in made.optimizer.weights]
    slots = [each.ravel() for each in made.optimizer.get_weights()[1:]]
    return {**found, "slots": slots, "is_saved": os.path.exists(path)}


def saved_weights(tf, folder):
    new_session(tf)
    with strategy(tf).scope():
        made = model(tf)
        made.compile(tf.keras.optimizers.Adam(0.01), "mse")
    fitted(made, X, Y, batch_size=6)
    losses = []
    for name in ("checkpoint", "weights.h5"):
        path = os.path.join(folder, name)
        made.save_weights(path)
        made.set_weights([0 * each for each in made.get_weights()])
        losses.append(float(made.evaluate(X, Y, batch_size=6, verbose=0)))
        made.load_weights(path)
        losses.append(float(made.evaluate(X, Y, batch_size=6, verbose=0)))
    made.save(os.path.join(folder, "model.h5"))
    tf.keras.backend.clear_session()
    alone = tf.keras.models.load_model(os.path.join(folder, "model.h5"))
    found = {"losses": losses, "alone": float(alone.evaluate(X, Y, batch_size=6, verbose=0))}
    return {**found, "on": fitted(alone, X, Y, batch_size=6)}


def parts(tf, folder):
    """Sparse gradients, averages of batches, losses and metrics that a model adds."""
    new_session(tf)
    layers = tf.keras.layers
    ids = np.random.RandomState(1).randint(0, 5, (18, 2))
    with strategy(tf).scope():
        inputs = tf.keras.Input((2,), dtype="int32")
        rows = layers.Flatten()(layers.Embedding(5, 3, embeddings_initializer=first(tf, 5, 3))(inputs))
        rows = layers.Dropout(0.0)(layers.BatchNormalization(momentum=0.5)(rows))
        outputs = layers.Dense(1, kernel_initializer=first(tf, 6, 1))(rows)
        made = tf.keras.Model(inputs, outputs)
        made.add_loss(tf.reduce_mean(tf.abs(outputs)) * 0.1)
        made.add_metric(rows, name="fm", aggregation="mean")
        made.compile("adagrad", "mse", metrics=["mse"])
    found = {"names": made.metrics_names, "fit": fitted(made, ids, Y, batch_size=6, epochs=2)}
    found["evaluate"] = made.evaluate(ids, Y, batch_size=6, verbose=0)
    return {**found, "weights": [each.ravel() for each in made.get_weights()]}


def recurrent(tf, folder):
    new_session(tf)
    layers = tf.keras.layers
    steps = np.random.RandomState(1).randn(12, 4, 2).astype("float32")
    steps[::2, 2:] = 0
    with strategy(tf).scope():
        cells = layers.LSTM(2, kernel_initializer=first(tf, 2, 8), recurrent_initializer=first(tf, 2, 8))
        made = tf.keras.Sequential(
            [layers.Masking(input_shape=(4, 2)), cells, layers.Dense(1, kernel_initializer=first(tf, 2, 1))]
        )
        made.compile("rmsprop", "mae")
    found = {"fit": fitted(made, steps, Y[:12], batch_size=4, epochs=2)}
    return {**found, "predict": made.predict(steps, batch_size=4).ravel()}


def optimizers(tf, folder):
    made = {"clip": lambda: tf.keras.optimizers.SGD(1.0, clipnorm=0.01)}
    for name in ("adam", "adadelta", "adamax", "ftrl", "rmsprop", "adagrad"):
        made[name] = lambda name=name: name
    found = {}
    for name, make in made.items():
        new_session(tf)
        with strategy(tf).scope():
            trained = model(tf)
            trained.compile(make(), "mse")
        losses = fitted(trained, X, Y, batch_size=6, epochs=2)
        found[name] = [losses, [each.ravel() for each in trained.get_weights()]]
    return found


PROGRAMS = [
    arrays, regularized, several_outputs, datasets, sums, callbacks, saved_weights, parts, recurrent,
    optimizers,
]  # fmt: skip
