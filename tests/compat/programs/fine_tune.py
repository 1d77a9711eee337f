"""A meta graph restored by name and fine-tuned; then frozen, optimised for inference, and run as a GraphDef."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import graph_util
from tensorflow.python.platform import gfile
from tensorflow.python.tools import freeze_graph, optimize_for_inference_lib, strip_unused_lib
from tensorflow.python.tools.inspect_checkpoint import print_tensors_in_checkpoint_file

folder = tempfile.mkdtemp()
rng = np.random.RandomState(0)
X = rng.normal(size=[24, 6, 6, 1]).astype(np.float32)
Y = (X[:, :3].sum((1, 2, 3)) > 0).astype(np.int32)


def pretrain():
    graph = tf.Graph()
    with graph.as_default():
        images = tf.placeholder(tf.float32, [None, 6, 6, 1], name="images")
        keep_prob = tf.placeholder_with_default(1.0, [], name="keep_prob")
        w = tf.get_variable("conv/w", initializer=rng.normal(0, .3, [3, 3, 1, 4]).astype(np.float32))
        conv = tf.nn.conv2d(images, w, [1, 1, 1, 1], "SAME")
        mean, var = tf.get_variable("bn/mean", [4], initializer=tf.zeros_initializer(), trainable=False), tf.get_variable(
            "bn/var", [4], initializer=tf.ones_initializer(), trainable=False)
        scale, offset = tf.get_variable("bn/scale", initializer=tf.fill([4], 1.5)), tf.get_variable(
            "bn/offset", initializer=tf.fill([4], .1))
        bn, _, _ = tf.nn.fused_batch_norm(conv, scale, offset, mean, var, is_training=False, name="bn/out")
        features = tf.identity(tf.nn.dropout(tf.reduce_mean(tf.nn.relu(bn), [1, 2]), keep_prob), name="features")
        logits = tf.layers.dense(features, 5, kernel_initializer=tf.constant_initializer(.1), name="old_head")
        tf.add_to_collection("logits", logits)
        saver = tf.train.Saver()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            path = saver.save(sess, os.path.join(folder, "pretrained"), global_step=100)
            tf.train.export_meta_graph(os.path.join(folder, "other.meta"), collection_list=["logits"])
    return path


path = pretrain()
print_tensors_in_checkpoint_file(path, tensor_name="", all_tensors=False)
print(sorted(tf.train.NewCheckpointReader(path).get_variable_to_shape_map().items()))

with tf.Graph().as_default() as graph:
    saver = tf.train.import_meta_graph(path + ".meta", clear_devices=True)
    images = graph.get_tensor_by_name("images:0")
    features = tf.stop_gradient(graph.get_tensor_by_name("features:0"))
    print(graph.get_collection("logits")[0].name, [v.name for v in tf.trainable_variables()])
    labels = tf.placeholder(tf.int32, [None], name="labels")
    with tf.variable_scope("new_head"):
        logits = tf.layers.dense(features, 2, kernel_initializer=tf.constant_initializer(.05))
        probabilities = tf.nn.softmax(logits, name="probabilities")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    new_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="new_head")
    train = tf.train.AdamOptimizer(0.1).minimize(loss, var_list=new_vars)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        saver.restore(sess, tf.train.latest_checkpoint(folder))
        for step in range(9):
            value, _ = sess.run([loss, train], {"images:0": X, labels: Y})
            if step % 4 == 0:
                print("step %d loss %.5f" % (step, value))
        expected = sess.run(probabilities, {images: X[:3]})
        tf.train.write_graph(graph.as_graph_def(), folder, "graph.pbtxt")
        tuned = tf.train.Saver().save(sess, os.path.join(folder, "tuned"))
        frozen = graph_util.convert_variables_to_constants(
            sess, graph.as_graph_def(), ["new_head/probabilities"], variable_names_blacklist=None)
    print("frozen", sorted({n.op for n in frozen.node} & {"VariableV2", "Conv2D", "MatMul", "Softmax", "Placeholder"}))

optimized = optimize_for_inference_lib.optimize_for_inference(
    frozen, ["images"], ["new_head/probabilities"], tf.float32.as_datatype_enum)
print("optimized", [n.name for n in optimized.node if n.op in ("Placeholder", "Softmax", "StopGradient")])
stripped = strip_unused_lib.strip_unused(frozen, ["features"], ["new_head/probabilities"],
                                         tf.float32.as_datatype_enum)
print("stripped", [n.name for n in stripped.node])
freeze_graph.freeze_graph(os.path.join(folder, "graph.pbtxt"), "", False, tuned, "new_head/probabilities",
                          "save/restore_all", "save/Const:0", os.path.join(folder, "frozen.pb"), True, "")
extracted = graph_util.extract_sub_graph(frozen, ["features"])
print("extracted", extracted.node[-1].name, len(graph_util.remove_training_nodes(extracted).node) < len(extracted.node))


def load_graph(frozen_graph_filename):
    with gfile.FastGFile(frozen_graph_filename, "rb") as f:
        graph_def = tf.GraphDef()
        graph_def.ParseFromString(f.read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, input_map=None, return_elements=None, name="prefix", op_dict=None,
                            producer_op_list=None)
    return graph


loaded = load_graph(os.path.join(folder, "frozen.pb"))
with tf.Session(graph=loaded) as sess:
    got = sess.run("prefix/new_head/probabilities:0", {"prefix/images:0": X[:3]})
    print("from file", bool(np.allclose(got, expected, atol=1e-5)), len(loaded.get_operations()) > 10)
with tf.Graph().as_default(), tf.Session() as sess:
    double = tf.constant(X[:3]) * 2.
    out, = tf.import_graph_def(optimized, {"images": double / 2.}, ["new_head/probabilities:0"], name="")
    print("optimized gives", bool(np.allclose(sess.run(out), expected, atol=1e-5)))
    print(" ".join("%.4f" % v for v in expected.ravel()))
