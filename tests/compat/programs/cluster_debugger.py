"""Programs for clusters run by one process: cluster specs, replica_device_setter; tfdbg's dumps."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.python import debug as tf_debug

tf.app.flags.DEFINE_string("ps_hosts", "", "Comma-separated list of hostname:port pairs")
tf.app.flags.DEFINE_integer("steps", 6, "how many")
FLAGS = tf.app.flags.FLAGS
X = np.random.RandomState(0).normal(size=[16, 3]).astype(np.float32)
Y = X.dot([[1.], [2.], [-1.]]).astype(np.float32)


def build():
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    prediction = tf.nn.xw_plus_b(tf.constant(X), w, b, name="prediction")
    return w, tf.reduce_mean(tf.square(prediction - Y), name="loss")


def main(_):
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:2"], "worker": ["c:3"]})
    print(cluster.jobs, cluster.num_tasks("ps"), cluster.job_tasks("worker"), cluster.as_dict()["ps"])
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")):
        placed = [tf.Variable(tf.zeros([2])) for _ in range(3)]
        step = tf.train.get_or_create_global_step()
        print([v.device for v in placed], step.device, tf.add(placed[0], 1.).device)
        strategy = tf.contrib.training.GreedyLoadBalancingStrategy(2, tf.contrib.training.byte_size_load_fn)
        print(callable(strategy))
    with tf.Graph().as_default():
        w, loss = build()
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train = optimizer.minimize(loss, global_step=step)
        losses = []
        with tf.train.MonitoredTrainingSession(master="", is_chief=True, save_summaries_steps=None, save_summaries_secs=None,
                                               hooks=[tf.train.StopAtStepHook(num_steps=FLAGS.steps)]) as sess:
            while not sess.should_stop():
                losses.append(sess.run([loss, train])[0])
        print("trained %.4f" % losses[0], losses[-1] < losses[0])

    # tfdbg
    dump_root = tempfile.mkdtemp()
    with tf.Graph().as_default(), tf.Session() as sess:
        w, loss = build()
        bad = tf.log(w - 1., name="bad")
        sess.run(tf.global_variables_initializer())
        dumping = tf_debug.DumpingDebugWrapperSession(
            sess, dump_root, watch_fn=lambda fetches, feeds: tf_debug.WatchOptions(node_name_regex_whitelist=r"(bad|prediction|w)$"))
        dumping.run([loss, bad])
        (folder,) = [os.path.join(dump_root, f) for f in os.listdir(dump_root) if f.startswith("run_")]
        dumps = tf_debug.DebugDumpDir(folder)
        names = sorted({d.node_name for d in dumps.dumped_tensor_data})
        found = dumps.find(tf_debug.has_inf_or_nan)
        print(names, [d.node_name for d in found], dumps.get_tensors("prediction", 0, "DebugIdentity")[0].shape)
        options, metadata = tf.RunOptions(output_partition_graphs=True), tf.RunMetadata()
        tf_debug.watch_graph(options, sess.graph, debug_urls=["file://" + os.path.join(dump_root, "own")])
        sess.run(loss, options=options, run_metadata=metadata)
        own = tf_debug.DebugDumpDir(os.path.join(dump_root, "own"), partition_graphs=metadata.partition_graphs)
        print(own.size > 3, "%.4f" % own.get_tensors("loss", 0, "DebugIdentity")[0], own.loaded_partition_graphs())


if __name__ == "__main__":
    tf.app.run()
