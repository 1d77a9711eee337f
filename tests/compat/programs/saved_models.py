"""Models exported and loaded: SavedModelBuilder, simple_save, loaders, signatures, assets, predictor, projector files."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.contrib.tensorboard.plugins import projector
from tensorflow.python.saved_model import builder as saved_model_builder
from tensorflow.python.saved_model import loader, signature_constants, signature_def_utils, tag_constants, utils
from tensorflow.python.saved_model.utils import build_tensor_info

folder = tempfile.mkdtemp()
export_path = os.path.join(folder, tf.compat.as_str(b"model"), "1")

# mnist_saved_model.py
with tf.Graph().as_default(), tf.Session() as sess:
    serialized_tf_example = tf.placeholder(tf.string, name='tf_example')
    feature_configs = {'x': tf.FixedLenFeature(shape=[3], dtype=tf.float32)}
    tf_example = tf.parse_example(serialized_tf_example, feature_configs)
    x = tf.identity(tf_example['x'], name='x')
    w = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2) / 10, name="w")
    b = tf.Variable([.5, -.5], name="b")
    y = tf.nn.softmax(tf.matmul(x, w) + b, name='y')
    values, indices = tf.nn.top_k(y, 2)
    vocabulary = os.path.join(folder, "labels.txt")
    with open(vocabulary, "w") as f:
        f.write("cat\ndog\n")
    asset = tf.constant(vocabulary)
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, asset)
    table = tf.contrib.lookup.index_to_string_table_from_file(vocabulary, default_value="?")
    classes = table.lookup(tf.to_int64(indices))
    sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
    builder = saved_model_builder.SavedModelBuilder(export_path)
    classification = signature_def_utils.build_signature_def(
        inputs={signature_constants.CLASSIFY_INPUTS: utils.build_tensor_info(serialized_tf_example)},
        outputs={signature_constants.CLASSIFY_OUTPUT_CLASSES: utils.build_tensor_info(classes),
                 signature_constants.CLASSIFY_OUTPUT_SCORES: utils.build_tensor_info(values)},
        method_name=signature_constants.CLASSIFY_METHOD_NAME)
    prediction = tf.saved_model.signature_def_utils.build_signature_def(
        inputs={'images': build_tensor_info(x)}, outputs={'scores': build_tensor_info(y)},
        method_name=tf.saved_model.signature_constants.PREDICT_METHOD_NAME)
    builder.add_meta_graph_and_variables(
        sess, [tag_constants.SERVING],
        signature_def_map={'predict_images': prediction,
                           signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: classification},
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        legacy_init_op=tf.group(tf.tables_initializer(), name='legacy_init_op'))
    builder.add_meta_graph(["other", "tags"], signature_def_map={"p": prediction}, clear_devices=True)
    builder.save(as_text=False)
    print("Done exporting!", sorted(os.listdir(export_path)), os.listdir(os.path.join(export_path, "assets")))
    tf.saved_model.simple_save(sess, os.path.join(folder, "simple"), inputs={"x": x}, outputs={"y": y, "top": values})

example = tf.train.Example(features=tf.train.Features(feature={
    'x': tf.train.Feature(float_list=tf.train.FloatList(value=[1, 2, 3]))})).SerializeToString()
with tf.Session(graph=tf.Graph()) as sess:
    print(loader.maybe_saved_model_directory(export_path))
    meta_graph_def = tf.saved_model.loader.load(sess, [tag_constants.SERVING], export_path)
    signature = meta_graph_def.signature_def
    print(sorted(signature), signature["predict_images"].method_name, signature["predict_images"].inputs["images"].tensor_shape.dim[1].size)
    outputs = signature['serving_default'].outputs
    names, scores = sess.run([outputs["classes"].name, outputs["scores"].name],
                             {signature['serving_default'].inputs["inputs"].name: [example]})
    print(names.tolist(), " ".join("%.4f" % s for s in scores[0]))
    info = utils.get_tensor_from_tensor_info(signature["predict_images"].outputs["scores"])
    print(info.name, info.shape, tf.get_default_graph().get_operation_by_name("w").type)
with tf.Session(graph=tf.Graph()) as sess:
    try:
        tf.saved_model.loader.load(sess, ["absent"], export_path)
    except RuntimeError as error:
        print("absent" in str(error))
predict = tf.contrib.predictor.from_saved_model(os.path.join(folder, "simple"))
print(sorted(predict.fetch_tensors), " ".join("%.4f" % v for v in predict({"x": [[1, 2, 3], [0, 0, 0]]})["y"].ravel()))

# An Estimator's own export.


def model_fn(features, labels, mode, params):
    net = tf.feature_column.input_layer(features, params["columns"])
    for units in params["hidden"]:
        net = tf.layers.dense(net, units, tf.nn.relu, kernel_initializer=tf.constant_initializer(.2))
    logits = tf.layers.dense(net, 1, kernel_initializer=tf.constant_initializer(.3))
    predictions = {"value": tf.squeeze(logits, 1)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs={
            "predict": tf.estimator.export.PredictOutput(predictions),
            tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY:
                tf.estimator.export.RegressionOutput(predictions["value"])})
    loss = tf.losses.mean_squared_error(labels, predictions["value"])
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={
            "rmse": tf.metrics.root_mean_squared_error(labels, predictions["value"])})
    train_op = tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), 0.1, "SGD", clip_gradients=1.,
                                               learning_rate_decay_fn=lambda r, s: tf.train.exponential_decay(r, s, 10, .9),
                                               summaries=["loss", "learning_rate"])
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.logging.set_verbosity(tf.logging.ERROR)
X = np.linspace(0, 1, 12).astype(np.float32)
columns = [tf.feature_column.numeric_column("a"), tf.feature_column.numeric_column("b", shape=(2,))]
features = {"a": X, "b": np.stack([X ** 2, 1 - X], 1)}
train_input = tf.estimator.inputs.numpy_input_fn(features, 3 * X, batch_size=4, num_epochs=None, shuffle=False)
eval_input = tf.estimator.inputs.numpy_input_fn(features, 3 * X, batch_size=12, num_epochs=1, shuffle=False)
estimator = tf.estimator.Estimator(model_fn, os.path.join(folder, "est"), tf.estimator.RunConfig(save_checkpoints_steps=10),
                                   params={"columns": columns, "hidden": [3]})
serving = tf.estimator.export.build_raw_serving_input_receiver_fn(
    {"a": tf.placeholder(tf.float32, [None, 1], name="a"), "b": tf.placeholder(tf.float32, [None, 2], name="b")})
exporter = tf.estimator.LatestExporter("latest", serving)
results, _ = tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(train_input, max_steps=20),
    tf.estimator.EvalSpec(eval_input, steps=1, exporters=[exporter], start_delay_secs=0, throttle_secs=0)) or ({}, None)
print({k: round(float(v), 4) for k, v in sorted(results.items())})
exported = os.path.join(folder, "est", "export", "latest")
served = tf.contrib.predictor.from_saved_model(os.path.join(exported, sorted(os.listdir(exported))[-1]), signature_def_key="predict")
print(" ".join("%.4f" % v for v in served({"a": [[.5]], "b": [[.25, .5]]})["value"]))
print([p["value"].round(3) for p in estimator.predict(eval_input)][:0], sorted(estimator.get_variable_names())[:3])

# TensorBoard's projector.
with tf.Graph().as_default(), tf.Session() as sess:
    embedding = tf.Variable(np.eye(4, 3, dtype=np.float32), name="word_embedding")
    sess.run(tf.global_variables_initializer())
    writer = tf.summary.FileWriter(folder)
    config = projector.ProjectorConfig()
    entry = config.embeddings.add()
    entry.tensor_name, entry.metadata_path = embedding.name, "metadata.tsv"
    entry.sprite.single_image_dim.extend([2, 2])
    projector.visualize_embeddings(writer, config)
    tf.train.Saver([embedding]).save(sess, os.path.join(folder, "model.ckpt"), 1)
    writer.close()
with open(os.path.join(folder, "projector_config.pbtxt")) as f:
    parsed = text_format.Parse(f.read(), projector.ProjectorConfig())
print(parsed.embeddings[0].tensor_name, list(parsed.embeddings[0].sprite.single_image_dim))
