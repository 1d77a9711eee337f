"""A task whose worker runs steps on the parameter server until one fails, and then trains."""

import sys
import time

import flowstone as tf


def failed_step(session, value):
    """Runs steps until one fails; prints how, and how long it took."""
    print("steps begin", flush=True)
    while True:
        begin = time.monotonic()
        try:
            session.run(value)
        except tf.errors.OpError as error:
            print(
                f"{type(error).__name__} after {time.monotonic() - begin:.1f} s: {error.message}", flush=True
            )
            return
        time.sleep(0.005)


def main(ps, worker, job, folder):
    cluster = tf.train.ClusterSpec({"ps": [ps], "worker": [worker]})
    server = tf.train.Server(cluster, job_name=job, task_index=0)
    print(f"{server.target} serves", flush=True)
    if job == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        step = tf.train.create_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(w - 3.0), step)
    sums = w + 1.0
    hooks = [tf.train.StopAtStepHook(1000)]
    with tf.train.MonitoredTrainingSession(
        server.target, checkpoint_dir=folder, hooks=hooks, save_checkpoint_steps=20, save_summaries_steps=None
    ) as session:
        with tf.Session(server.target) as plain:
            failed_step(plain, sums)
        while not session.should_stop():
            weight, _ = session.run([w, train])
    print(f"trained to {weight:.3f}", flush=True)


main(*sys.argv[1:])
