"""An Estimator whose tasks are named by TF_CONFIG: chief, workers, parameter servers, evaluator."""

import sys

import numpy as np
import tensorflow as tf

WEIGHTS = np.array([[1.0], [-2.0], [0.5]], np.float32)


def input_fn():
    random = np.random.RandomState(0)
    x = random.randn(64, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.dot(WEIGHTS))).repeat().batch(32)


def main(folder):
    config = tf.estimator.RunConfig(model_dir=folder, save_checkpoints_steps=100, log_step_count_steps=None)
    columns = [tf.feature_column.numeric_column("x", [3])]
    optimizer = tf.train.GradientDescentOptimizer(0.001)
    estimator = tf.estimator.LinearRegressor(columns, config=config, optimizer=optimizer)
    result = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, max_steps=300),
        tf.estimator.EvalSpec(input_fn, steps=2, start_delay_secs=0, throttle_secs=0),
    )
    print(config.task_type, config.task_id, "ended with", result, flush=True)
    if config.task_type == "evaluator":
        loss = estimator.evaluate(input_fn, steps=2)["average_loss"]
        print(f"loss {loss:.6f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
