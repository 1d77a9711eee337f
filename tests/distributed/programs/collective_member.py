"""A member of an all-reduce over processes: it goes on after errors, until it has made its steps.

Arguments: the cluster (JSON), the task, the number of steps, the number of elements. A line a step says the
sum, or the error.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

import flowstone as tf
from flowstone.ops.collectives.collective_ops import all_reduce


def main() -> None:
    cluster, task, steps, count = (
        json.loads(sys.argv[1]),
        int(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]),
    )
    members, own = len(cluster["worker"]), f"/job:worker/task:{task}"
    config = tf.ConfigProto(device_filters=[own])
    server = tf.train.Server(cluster, "worker", task, config=config)
    with tf.device(own):
        value = tf.placeholder(tf.float32, [count])
        total = all_reduce(value, members, 1, 1, "Add", "Id")
    made = 0
    with tf.Session(server.target, config=config) as session:
        while made < steps:
            try:
                result = session.run(total, {value: np.full(count, task + 1.0, np.float32)})
            except tf.errors.OpError as error:
                print(
                    "error", type(error).__name__, error.node_def.name if error.node_def else "", flush=True
                )
                time.sleep(0.05)
                continue
            made += 1
            print("sum", result.min(), result.max(), flush=True)
            time.sleep(0.02)


if __name__ == "__main__":
    main()
