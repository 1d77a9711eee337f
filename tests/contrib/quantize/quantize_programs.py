"""Small models rewritten by `tf.contrib.quantize`, for TensorFlow 1.15 and flowstone alike."""

from __future__ import annotations

from typing import Any

import numpy as np

STEPS = 3


def _conv(tf: Any, training: bool, fused: bool = True) -> Any:
    slim = tf.contrib.slim
    x = tf.placeholder(tf.float32, [2, 8, 8, 3], name="x")
    params = {"is_training": training, "fused": fused, "scale": True}
    net = slim.conv2d(x, 4, [3, 3], normalizer_fn=slim.batch_norm, normalizer_params=params, scope="c1")
    return slim.conv2d(net, 2, [3, 3], activation_fn=None, scope="c2") * 1.0


def _unfused(tf: Any, training: bool) -> Any:
    return _conv(tf, training, fused=False)


def _mobilenet(tf: Any, training: bool) -> Any:
    """The form of MobileNet: depthwise and pointwise convolutions, a pool and logits."""
    slim = tf.contrib.slim
    net = tf.placeholder(tf.float32, [2, 8, 8, 3], name="x")
    layers = [slim.conv2d, slim.separable_conv2d]
    norm = slim.arg_scope([slim.batch_norm], is_training=training)
    forms = slim.arg_scope(layers, activation_fn=tf.nn.relu6, normalizer_fn=slim.batch_norm)
    with norm, forms, tf.variable_scope("MobilenetV1"):
        net = slim.conv2d(net, 4, [3, 3], stride=2, scope="Conv2d_0")
        for i, stride in enumerate((1, 2)):
            scope = f"Conv2d_{i + 1}"
            net = slim.separable_conv2d(net, None, [3, 3], 1, stride=stride, scope=scope + "_depthwise")
            net = slim.conv2d(net, 6, [1, 1], scope=scope + "_pointwise")
        net = slim.avg_pool2d(net, [2, 2], scope="AvgPool_1a")
        with tf.variable_scope("Logits"):
            net = slim.conv2d(net, 5, [1, 1], activation_fn=None, normalizer_fn=None, scope="Conv2d_1x1")
        return slim.softmax(tf.squeeze(net, [1, 2]))


def _residual(tf: Any, training: bool) -> Any:
    slim = tf.contrib.slim
    x = tf.placeholder(tf.float32, [2, 8, 8, 3], name="x")
    norm = {"normalizer_fn": slim.batch_norm, "normalizer_params": {"is_training": training}}
    first = slim.conv2d(x, 4, [3, 3], scope="a", **norm)
    with tf.variable_scope("block"):
        net = slim.conv2d(first, 4, [3, 3], activation_fn=None, scope="b", **norm)
        net = tf.nn.relu(net + first)
    with tf.variable_scope("linear"):
        net = net + slim.conv2d(net, 4, [1, 1], activation_fn=None, scope="c")
        net = tf.identity(net, "output")
    return tf.reduce_sum(net, [1, 2])


def _dense(tf: Any, training: bool) -> Any:
    x = tf.placeholder(tf.float32, [2, 8, 8, 3], name="x")
    net = tf.layers.dense(tf.reshape(x, [2, 192]), 5, activation=tf.nn.relu)
    net = net * tf.sigmoid(net)
    return tf.nn.softmax(tf.layers.dense(net, 3))


def _resource(tf: Any, training: bool) -> Any:
    with tf.variable_scope("v", use_resource=True):
        x = tf.placeholder(tf.float32, [2, 8, 8, 3], name="x")
        net = tf.layers.conv2d(x, 4, 3, use_bias=False)
        net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, fused=True))
        return tf.reduce_sum(tf.layers.conv2d(net, 4, 3, activation=tf.nn.relu), [1, 2])


_EVAL = "experimental_create_eval_graph"
_TRAIN = "experimental_create_training_graph"
# Name: the model, whether it is a training graph, the rewriting function, its arguments.
CASES: dict[str, tuple[Any, bool, str, dict[str, Any]]] = {
    "conv": (_conv, True, "create_training_graph", {}),
    "conv late": (_conv, True, _TRAIN, {"quant_delay": 2, "freeze_bn_delay": 2}),
    "conv eval": (_conv, False, "create_eval_graph", {}),
    "unfused": (_unfused, True, _TRAIN, {"freeze_bn_delay": 2}),
    "mobilenet": (_mobilenet, True, "create_training_graph", {}),
    "mobilenet eval": (_mobilenet, False, _EVAL, {"weight_bits": 4, "quant_delay": 1}),
    "residual": (_residual, True, "create_training_graph", {}),
    "residual block": (_residual, True, _TRAIN, {"scope": "block"}),
    "dense": (_dense, True, _TRAIN, {"symmetric": True, "weight_bits": 6}),
    "resource": (_resource, True, "create_training_graph", {"quant_delay": 1}),
}


def _said(node: Any) -> bool:
    plumbing = (
        "/Assign",
        "/read",
        "/ReadVariableOp",
        "dilation_rate",
        "/Shape",
        "/IsInitialized/VarIsInitializedOp",
    )
    return "Initializer" not in node.name and "Ema/" not in node.name and not node.name.endswith(plumbing)


# The cases of which all nodes are compared; of the others those with quantised inputs, and the quantisations.
WHOLE = ("conv late", "unfused", "dense", "conv eval")


def _nodes(graph: Any, before: dict[str, list[str]], whole: bool) -> dict[str, str]:
    """What the rewriting made and changed; constants are left out."""
    found = {}
    for node in graph.as_graph_def().node:
        if node.op != "Const" and _said(node) and before.get(node.name) != list(node.input):
            if not whole and "Fake" not in " ".join([node.op, *node.input]):
                continue
            inputs = [i for i in node.input if "^" not in i]
            said = f"{node.op.replace('AddV2', 'Add')} {' '.join(inputs)}"
            found[node.name] = said.replace("gamma/read", "gamma")
    return found


def _values(tf: Any, output: Any) -> dict[str, list[float]]:
    """The output and the ranges after each of three steps on other inputs, from weights made by a sine."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for variable in tf.trainable_variables():
            size = int(np.prod(variable.shape.as_list()))
            array = np.sin(np.arange(size) * 1.3 + 0.4).reshape(variable.shape.as_list()) * 0.5
            variable.load(array.astype(np.float32), session)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        x = output.graph.get_tensor_by_name("v/x:0" if "v/x" in _names(output.graph) else "x:0")
        steps = []
        for step in range(STEPS):
            array = np.cos(np.arange(384) * (0.7 + 0.1 * step)).reshape(2, 8, 8, 3)
            steps.append(session.run(output, {x: array}).ravel().tolist())
            session.run(updates, {x: array})
        # The updates of one layer's averages run another layer's quantisation, in no certain order.
        session.run(output, {x: array})
        names = [v for v in tf.global_variables() if v.op.name.endswith(("/min", "/max"))]
        ranges = {v.op.name: float(session.run(v)) for v in names}
    return {"steps": [[round(v, 5) for v in step[:12]] for step in steps], "ranges": ranges}


def _names(graph: Any) -> set[str]:
    return {op.name for op in graph.get_operations()}


def answer(tf: Any, name: str) -> dict[str, Any]:
    """The rewritten nodes, the variables' names, and values of one case."""
    model, training, function, arguments = CASES[name]
    with tf.Graph().as_default() as graph:
        output = tf.identity(model(tf, training), "final")
        before = {node.name: list(node.input) for node in graph.as_graph_def().node}
        getattr(tf.contrib.quantize, function)(**arguments)
        nodes = _nodes(graph, before, name in WHOLE)
        variables = [v.op.name for v in tf.global_variables()]
        return {"nodes": nodes, "variables": variables, **_values(tf, output)}
