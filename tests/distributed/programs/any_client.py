"""Steps on a cluster of one ``ps`` and two ``worker`` tasks, as a client of any TensorFlow makes them.

python any_client.py grpc://host:port        # of worker 0; prints the results as JSON, by name
"""

import json
import os
import sys
import tempfile
import threading
import time

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:
    import tensorflow as tf
import numpy as np

PS, OTHER = "/job:ps/task:0", "/job:worker/task:1"
UNIQUE = str(os.getpid())  # the servers may have served others
KINDS = []


def kind(function):
    KINDS.append(function)
    return function


def replicas():
    return tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=OTHER))


@kind
def partitioned_variables(target):
    with replicas():
        v = tf.get_variable(
            "parts" + UNIQUE, [10, 4], initializer=tf.ones_initializer(),
            partitioner=tf.fixed_size_partitioner(3),
        )  # fmt: skip
        rows = tf.nn.embedding_lookup(v, [0, 5, 9], partition_strategy="div")
        ids = tf.SparseTensor([[0, 0], [1, 2]], tf.constant([3, 7], tf.int64), [2, 3])
        bags = tf.nn.embedding_lookup_sparse(v, ids, None, partition_strategy="div", combiner="sum")
        loss = tf.reduce_sum(rows) + tf.reduce_sum(bags)
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return [session.run([loss, train])[0] for _ in range(3)]


@kind
def sparse_tensors(target):
    x = tf.sparse_placeholder(tf.float32)
    with tf.device(OTHER):
        product, total = tf.sparse_tensor_dense_matmul(x, tf.ones([3, 2])), tf.sparse_add(x, x)
    with tf.Session(target) as session:
        given = tf.SparseTensorValue(np.int64([[0, 0], [1, 2]]), np.float32([3, 7]), np.int64([2, 3]))
        product, total = session.run([product, total], {x: given})
        return [product, total.indices, total.values, total.dense_shape]


@kind
def loops_and_branches(target):
    p = tf.placeholder(tf.bool, [])
    with tf.device(OTHER):
        total = tf.while_loop(lambda i, x: i < 10, lambda i, x: (i + 1, x * 1.5), [0, 1.0])[1]
    with tf.device(PS):
        chosen = tf.cond(p, lambda: total + 1.0, lambda: tf.constant(5.0))
    with tf.Session(target) as session:
        return [session.run(chosen * 2.0, {p: value}) for value in (True, False)]


@kind
def recurrent_training(target):
    x = tf.placeholder(tf.float32, [None, 5, 3])
    with replicas(), tf.variable_scope("cells" + UNIQUE, initializer=tf.constant_initializer(0.1)):
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), x, dtype=tf.float32)
        loss = tf.reduce_sum(tf.square(outputs - 1.0))
        train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return [session.run([loss, train], {x: np.ones((n, 5, 3))})[0] for n in (1, 2, 3, 2, 1)]


@kind
def queues_and_partial_runs(target):
    with tf.device(PS):
        queue = tf.FIFOQueue(5, [tf.string], [[2]], shared_name="queue" + UNIQUE)
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.device(OTHER):
        c = a + 1.0
    d = c * b
    with tf.Session(target) as session:
        session.run(queue.enqueue([tf.constant(["a" * 80, "bc"])]))
        taken = [value.decode() for value in session.run(queue.dequeue())]
        handle = session.partial_run_setup([c, d], [a, b])
        parts = [session.partial_run(handle, c, {a: 2.0}), session.partial_run(handle, d, {b: 4.0})]
        return [taken, parts, session.make_callable(c, [a])(5.0)]


@kind
def data_sets(target):
    with tf.device(PS):
        data = tf.data.Dataset.range(6).map(lambda x: x * 2).batch(2, drop_remainder=True)
        iterator = tf.data.make_initializable_iterator(data)
        batch = iterator.get_next()
    with tf.device(OTHER):
        more = batch + 1
    with tf.Session(target) as session:
        session.run(iterator.initializer)
        batches = [session.run(more) for _ in range(3)]
        return [*batches, error_of(session, more)]


@kind
def tables_and_resources(target):
    with tf.device(PS):
        v = tf.get_variable("resource" + UNIQUE, [3], use_resource=True, initializer=tf.ones_initializer())
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], np.int64([1, 2]))
        found = tf.lookup.StaticHashTable(words, -1).lookup(tf.constant(["b", "z"]))
    with tf.device(OTHER):
        found, doubled = found + 1, v.assign_add(tf.ones([3])) * 2.0
    with tf.Session(target) as session:
        session.run([v.initializer, tf.tables_initializer()])
        return session.run([found, doubled])


def error_of(session, fetch, feed=None, **options):
    try:
        session.run(fetch, feed, **options)
    except Exception as error:
        return type(error).__name__
    return "none"


@kind
def errors(target):
    x = tf.placeholder(tf.float32, [None])
    with tf.device(OTHER):
        bad, number = tf.reshape(x, [2, 2]), tf.check_numerics(tf.log(x - x) * 0.0, "no number")
    with tf.device(PS):
        v = tf.Variable(1.0, name="without" + UNIQUE)
        taken = tf.FIFOQueue(1, tf.float32, shapes=[[]], shared_name="empty" + UNIQUE).dequeue()
        row = tf.gather([1.0, 2.0], tf.placeholder_with_default(5, []))
        kept = tf.get_session_handle(x)
    with tf.Session(target) as session:
        found = [error_of(session, each, {x: [1.0, 2.0, 3.0]}) for each in (bad, number, v, row, kept)]
        found.append(error_of(session, taken, options=tf.RunOptions(timeout_in_ms=200)))
    session = tf.Session(target)
    session.run(tf.no_op())
    waiting = threading.Thread(target=lambda: found.append(error_of(session, taken)), daemon=True)
    waiting.start()
    time.sleep(0.5)
    session.close()
    waiting.join(20)
    return found


@kind
def containers(target):
    with tf.container("box" + UNIQUE), tf.device(PS):
        v = tf.Variable(1.0, name="boxed" + UNIQUE)
    is_there = tf.is_variable_initialized(v)
    with tf.Session(target) as session:
        session.run(v.initializer)
        before = session.run(is_there)
    tf.Session.reset(target, ["box" + UNIQUE])
    with tf.Session(target) as session:
        return [bool(before), bool(session.run(is_there))]


@kind
def traces(target):
    with tf.device(PS):
        v = tf.Variable(tf.ones([3, 3]), name="traced" + UNIQUE)
    with tf.device(OTHER):
        y = tf.matmul(v, v)
    metadata, options = tf.RunMetadata(), tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session(target) as session:
        session.run(v.initializer)
        session.run(y, options=options, run_metadata=metadata)
    devices = {each.device.partition("/replica")[0] for each in metadata.step_stats.dev_stats}
    return sorted(name for name in devices if name.startswith("/job"))


@kind
def monitored_training(target):
    folder = tempfile.mkdtemp()
    with replicas():
        v = tf.get_variable("monitored" + UNIQUE, [], initializer=tf.zeros_initializer())
        loss = tf.square(v - 3.0)
        train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
    tf.summary.scalar("loss", loss)
    with tf.train.MonitoredTrainingSession(
        target, checkpoint_dir=folder, save_checkpoint_steps=10, save_summaries_steps=5,
        hooks=[tf.train.StopAtStepHook(25)],
    ) as session:  # fmt: skip
        while not session.should_stop():
            value = session.run([loss, train])[0]
    return [value, sorted(name for name in os.listdir(folder) if name.endswith("index"))]


@kind
def supervised_training(target):
    folder = tempfile.mkdtemp()
    with replicas():
        v = tf.Variable(2.0, name="supervised" + UNIQUE)
        add = v.assign_add(1.0)
    supervisor = tf.train.Supervisor(logdir=folder)
    with supervisor.managed_session(target) as session:
        values = [session.run(add) for _ in range(3)]
        supervisor.saver.save(session, folder + "/model")
    return [values, os.path.exists(folder + "/model.index")]


@kind
def synchronous_training(target):
    with replicas():
        v = tf.get_variable("synchronous" + UNIQUE, [2], initializer=tf.zeros_initializer())
        loss, step = tf.reduce_sum(tf.square(v - 3.0)), tf.train.get_or_create_global_step()
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1, 1)
        train = optimizer.minimize(loss, global_step=step)
    hooks = [optimizer.make_session_run_hook(True, num_tokens=0), tf.train.StopAtStepHook(5)]
    with tf.train.MonitoredTrainingSession(target, hooks=hooks, stop_grace_period_secs=1) as session:
        while not session.should_stop():
            value = session.run([loss, train])[0]
    return value


def main(target):
    results = {}
    for each in KINDS:
        with tf.Graph().as_default():
            results[each.__name__] = each(target)
    print(json.dumps(results, default=lambda value: value.tolist()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
