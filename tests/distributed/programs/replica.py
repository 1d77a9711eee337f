"""Between-graph replication as TensorFlow's tutorials taught it: a linear model on parameter servers."""

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "addresses of the parameter servers")
flags.DEFINE_string("worker_hosts", "", "addresses of the workers")
flags.DEFINE_string("job_name", "", "ps or worker")
flags.DEFINE_integer("task_index", 0, "which task of the job")
flags.DEFINE_integer("steps", 200, "of all workers together")
flags.DEFINE_integer("save_every", 20, "steps")
flags.DEFINE_string("train_dir", "", "where checkpoints go")
flags.DEFINE_string("method", "async", "async, sync or supervisor")
flags.DEFINE_float("pause", 0.0, "seconds after each step")
FLAGS = flags.FLAGS

WEIGHTS = np.array([[1.0], [-2.0], [0.5]], np.float32)


def batches(seed):
    random = np.random.RandomState(seed)
    while True:
        x = random.randn(32, 3).astype(np.float32)
        yield x, x.dot(WEIGHTS)


def train(run, should_stop, ops, x, t):
    import time

    loss = step = None
    for given, wanted in batches(FLAGS.task_index):
        if step is not None and should_stop():  # who comes late takes a step, too
            break
        loss, step, _ = run(ops, {x: given, t: wanted})
        time.sleep(FLAGS.pause)
    print("worker {}: loss {:.6f} at step {}".format(FLAGS.task_index, loss, step), flush=True)  # noqa: UP032


def main(_):
    ps, workers = FLAGS.ps_hosts.split(","), FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps, "worker": workers})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    is_chief = FLAGS.task_index == 0
    device = "/job:worker/task:{}".format(FLAGS.task_index)  # noqa: UP032
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        x, t = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
        w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
        b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - t))
        global_step = tf.train.get_or_create_global_step()
        optimizer = tf.train.MomentumOptimizer(0.02, 0.5)
        hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps)]
        if FLAGS.method == "sync":
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, len(workers), len(workers))
            hooks.append(optimizer.make_session_run_hook(is_chief))
        train_op = optimizer.minimize(loss, global_step=global_step)
        init_op = tf.global_variables_initializer()
    ops = [loss, global_step, train_op]
    config = tf.ConfigProto(device_filters=["/job:ps", device])
    if FLAGS.method == "supervisor":
        supervisor = tf.train.Supervisor(
            is_chief=is_chief, logdir=FLAGS.train_dir or None, init_op=init_op, global_step=global_step
        )
        with supervisor.prepare_or_wait_for_session(server.target, config=config) as session:

            def done():
                return supervisor.should_stop() or session.run(global_step) >= FLAGS.steps

            train(session.run, done, ops, x, t)
        return
    with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=is_chief, checkpoint_dir=FLAGS.train_dir or None, hooks=hooks,
        config=config,
        save_checkpoint_secs=None, save_checkpoint_steps=FLAGS.save_every, save_summaries_steps=None,
        log_step_count_steps=None,
    ) as session:  # fmt: skip
        train(session.run, session.should_stop, ops, x, t)


if __name__ == "__main__":
    tf.app.run()
