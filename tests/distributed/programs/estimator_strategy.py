"""An Estimator trained by a strategy of TensorFlow's tutorials, on the cluster that TF_CONFIG says."""

import sys

import numpy as np
import tensorflow as tf

WEIGHTS = np.array([[1.0], [-2.0], [0.5]], np.float32)


def input_fn(input_context=None):
    x = np.random.RandomState(0).randn(64, 3).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, x.dot(WEIGHTS)))
    if input_context is not None:
        data = data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return data.repeat().batch(16)


def model_fn(features, labels, mode, params):
    outputs = tf.layers.dense(features, 1, kernel_initializer=tf.random_normal_initializer(seed=7))
    loss = tf.losses.mean_squared_error(labels, outputs)
    step = tf.train.get_global_step()
    train = tf.train.MomentumOptimizer(params["rate"], 0.5).minimize(loss, step) if mode == "train" else None
    return tf.estimator.EstimatorSpec(mode, outputs, loss, train)


def main(folder, kind):
    strategy = {
        "ps": tf.contrib.distribute.ParameterServerStrategy,
        "collective": tf.distribute.experimental.MultiWorkerMirroredStrategy,
        "one": lambda: None,
    }[kind]()
    config = tf.estimator.RunConfig(
        folder, train_distribute=strategy, save_checkpoints_steps=20, log_step_count_steps=None
    )
    params = {"rate": 0.1 if kind == "ps" else 0.01}  # far from the end, where gradients would not matter
    estimator = tf.estimator.Estimator(model_fn, config=config, params=params)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, max_steps=40),
        tf.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0, throttle_secs=0),
    )
    if config.is_chief:
        names = ["dense/kernel", "dense/bias"]
        values = [x for name in names for x in estimator.get_variable_value(name).ravel()]
        print("weights", *[f"{x:.6f}" for x in values], flush=True)
    print(config.task_type, config.task_id, "ended", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
