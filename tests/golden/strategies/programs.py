"""Programs of TensorFlow 1.15 under strategies of two replicas, which run on TensorFlow and here alike.

Each takes the module `tf` and a folder, and gives what JSON can hold.
"""

import os

import numpy as np

DEVICES = ["/cpu:0", "/cpu:1"]


def config(tf):
    return tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=False)


def listed(value):
    """Values as JSON has them, rounded so that the order of additions does not show."""
    if isinstance(value, dict):
        return {str(key): listed(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [listed(each) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (np.ndarray, np.generic)):
        return listed(value.tolist())
    return float(format(value, ".5g")) if isinstance(value, float) else value


def variables(tf):
    """Names, shapes and collections of the default graph's variables."""
    return {
        key: sorted((each.name, each.shape.as_list()) for each in tf.get_collection(key))
        for key in ("variables", "local_variables", "trainable_variables")
    }


def saved(tf, folder, session, **given):
    """The keys and values of a checkpoint of the session's variables."""
    path = tf.train.Saver(**given).save(session, os.path.join(folder, "model"))
    return {key: tf.train.load_variable(path, key) for key, _ in tf.train.list_variables(path)}


def data(tf, size=16, batch=4):
    x = np.random.RandomState(0).uniform(-1, 1, [size, 3]).astype(np.float32)
    y = (x @ np.array([[1.0], [-2.0], [0.5]], np.float32) > 0).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch, drop_remainder=True)


def network(tf, x, training):
    """A network with batch normalisation, its variables' initial values alike everywhere."""
    start = tf.constant_initializer(np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32))
    hidden = tf.layers.dense(x, 4, use_bias=False, kernel_initializer=start, name="first")
    hidden = tf.layers.batch_normalization(hidden, training=training, momentum=0.9, name="norm")
    kernel = tf.constant_initializer(np.linspace(-0.5, 1, 4).reshape(4, 1).astype(np.float32))
    return tf.layers.dense(tf.nn.relu(hidden), 1, kernel_initializer=kernel, name="last")


def trained(tf, folder, strategy, make, steps=4, splits=True):
    """Losses, variables and checkpoint of some steps by the optimiser that `make` makes."""
    with tf.Graph().as_default():
        with strategy.scope():
            optimizer = make()
            step = tf.train.get_or_create_global_step()
            given = data(tf) if splits else data(tf, batch=2)
            iterator = strategy.make_dataset_iterator(given)

            def replica(inputs):
                x, y = inputs
                logits = network(tf, x, True)
                loss = tf.losses.sigmoid_cross_entropy(y, logits, reduction=tf.losses.Reduction.SUM) / 4
                total, update = tf.metrics.mean(tf.sigmoid(logits))
                with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
                    train = optimizer.minimize(loss, step)
                return loss, train, total, update

            loss, train, total, update = strategy.experimental_run(replica, iterator)
            fetches = [strategy.reduce("SUM", loss), strategy.group(train), strategy.group(update)]
        names = variables(tf)
        with tf.Session(config=config(tf)) as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            session.run(iterator.initialize())
            losses = [session.run(fetches)[0] for _ in range(steps)]
            return {
                "losses": losses,
                "metric": session.run(total),
                "variables": names,
                "checkpoint": saved(tf, folder, session),
            }


def optimizers(tf, folder):
    kinds = {
        "sgd": lambda: tf.train.GradientDescentOptimizer(0.5),
        "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        "adam": lambda: tf.train.AdamOptimizer(0.05),
        "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
        "rmsprop": lambda: tf.train.RMSPropOptimizer(0.05, centered=True),
        "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0),
    }
    return {
        kind: trained(tf, folder, tf.distribute.MirroredStrategy(DEVICES), make)
        for kind, make in kinds.items()
    }


def central_storage(tf, folder):
    strategy = tf.distribute.experimental.CentralStorageStrategy(DEVICES, "/cpu:0")
    return trained(tf, folder, strategy, lambda: tf.train.AdamOptimizer(0.05))


def contrib_mirrored(tf, folder):
    strategy = tf.contrib.distribute.MirroredStrategy(DEVICES)
    return trained(tf, folder, strategy, lambda: tf.train.AdamOptimizer(0.05), splits=False)


def embeddings(tf, folder):
    """Sparse gradients."""
    strategy = tf.distribute.MirroredStrategy(DEVICES)
    with tf.Graph().as_default():
        with strategy.scope():
            iterator = strategy.make_dataset_iterator(tf.data.Dataset.from_tensors([0, 3, 3, 1]).repeat())

            def replica(ids):
                table = tf.get_variable("table", initializer=np.arange(8.0, dtype=np.float32).reshape(4, 2))
                loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 2)
                return tf.train.MomentumOptimizer(0.1, 0.5).minimize(loss)

            train = strategy.group(strategy.experimental_run(replica, iterator))
        with tf.Session(config=config(tf)) as session:
            session.run([tf.global_variables_initializer(), iterator.initialize()])
            for _ in range(3):
                session.run(train)
            return saved(tf, folder, session)


def averages(tf, folder):
    """Values under `assign_moving_average`, whose mean over the replicas counts."""
    from tensorflow.python.training import moving_averages

    strategy = tf.distribute.MirroredStrategy(DEVICES)
    with tf.Graph().as_default():
        with strategy.scope():

            def replica():
                number = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
                mean = tf.get_variable("mean", initializer=2.0, trainable=False)
                moved = moving_averages.assign_moving_average(mean, number, 0.9, zero_debias=False)
                return tf.identity(moved)

            step = strategy.group(strategy.experimental_run_v2(replica))
        with tf.Session(config=config(tf)) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(step)
            return {"variables": variables(tf), "checkpoint": saved(tf, folder, session)}


def estimator(tf, folder):
    """An Estimator that trains and evaluates under a strategy, and predicts without."""
    strategy = tf.contrib.distribute.MirroredStrategy(DEVICES)
    settings = tf.estimator.RunConfig(
        train_distribute=strategy,
        eval_distribute=tf.contrib.distribute.MirroredStrategy(DEVICES),
        session_config=config(tf),
        model_dir=os.path.join(folder, "estimator"),
    )
    losses = []

    class Losses(tf.train.SessionRunHook):
        def before_run(self, context):
            return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[-1])

        def after_run(self, context, values):
            losses.append(values.results)

    def model_fn(features, labels, mode):
        logits = network(tf, features, mode == tf.estimator.ModeKeys.TRAIN)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
        loss = tf.losses.sigmoid_cross_entropy(labels, logits)
        predicted = tf.cast(logits > 0, tf.float32)
        metrics = {
            "accuracy": tf.metrics.accuracy(labels, predicted),
            "auc": tf.metrics.auc(labels, tf.sigmoid(logits)),
            "precision": tf.metrics.precision(labels, predicted),
        }
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_or_create_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, eval_metric_ops=metrics)

    made = tf.estimator.Estimator(model_fn, config=settings)
    made.train(lambda: data(tf, batch=2), steps=5, hooks=[Losses()])
    evaluated = made.evaluate(lambda: data(tf, batch=2), steps=3)
    predictions = [each["logits"] for _, each in zip(range(3), made.predict(lambda: data(tf)))]
    path = made.latest_checkpoint()
    return {
        "losses": losses,
        "evaluated": evaluated,
        "predictions": predictions,
        "checkpoint": {key: tf.train.load_variable(path, key) for key, _ in tf.train.list_variables(path)},
    }


PROGRAMS = [optimizers, central_storage, contrib_mirrored, embeddings, averages, estimator]
