"""What TensorFlow 1.15.5's `tf.contrib.slim.nets` are made of: `contrib/slim_nets.json`.

    $TF115_PYTHON tests/golden/make_slim_net_goldens.py

For each net of `NETS`: the variables (name, shape, trainable), the end points (key, node, shape), the nodes
that convolve, pool, join and normalise (name, type, shapes, padding), how many losses and updates are
collected. Only of those in `WHOLE` are variables and end points written as they are, of the rest and of all
nodes a digest. The tests describe ours with `describe`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

# Net, input, further arguments, whether its own scope of arguments is used.
NETS: dict[str, tuple[str, list[int], dict[str, Any]]] = {
    "alexnet_v2": ("alexnet.alexnet_v2", [2, 224, 224, 3], {}),
    "alexnet_v2 test": (
        "alexnet.alexnet_v2", [2, 300, 300, 3], {"is_training": False, "spatial_squeeze": False},
    ),
    "overfeat": ("overfeat.overfeat", [2, 231, 231, 3], {"num_classes": 10}),
    "vgg_a": ("vgg.vgg_a", [2, 224, 224, 3], {}),
    "vgg_16": ("vgg.vgg_16", [2, 224, 224, 3], {"num_classes": 10}),
    "vgg_19 test": ("vgg.vgg_19", [1, 256, 256, 3], {"is_training": False, "spatial_squeeze": False}),
    "inception_v1": ("inception.inception_v1", [2, 224, 224, 3], {}),
    "inception_v1 test": (
        "inception.inception_v1", [1, 224, 224, 3], {"num_classes": 7, "is_training": False},
    ),
    "inception_v2": ("inception.inception_v2", [2, 224, 224, 3], {}),
    "inception_v2 half": (
        "inception.inception_v2", [2, 160, 160, 3], {"depth_multiplier": 0.5, "num_classes": 7},
    ),
    "inception_v3": ("inception.inception_v3", [2, 299, 299, 3], {}),
    "inception_v3 half": (
        "inception.inception_v3", [2, 224, 224, 3], {"depth_multiplier": 0.5, "num_classes": 7},
    ),
    "resnet_v1_50": ("resnet_v1.resnet_v1_50", [2, 224, 224, 3], {"num_classes": 1000}),
    "resnet_v1_50 features": ("resnet_v1.resnet_v1_50", [1, 65, 65, 3], {"global_pool": False}),
    "resnet_v1_50 dense": (
        "resnet_v1.resnet_v1_50", [1, 65, 65, 3],
        {"global_pool": False, "output_stride": 8, "is_training": False},
    ),
    "resnet_v1_101": ("resnet_v1.resnet_v1_101", [2, 224, 224, 3], {}),
    "resnet_v1_152": ("resnet_v1.resnet_v1_152", [2, 224, 224, 3], {}),
    "resnet_v1_200": ("resnet_v1.resnet_v1_200", [2, 224, 224, 3], {}),
    "resnet_v2_50": ("resnet_v2.resnet_v2_50", [2, 224, 224, 3], {"num_classes": 1000}),
    "resnet_v2_50 dense": (
        "resnet_v2.resnet_v2_50", [1, 65, 65, 3],
        {"global_pool": False, "output_stride": 16, "is_training": False},
    ),
    "resnet_v2_101": ("resnet_v2.resnet_v2_101", [2, 224, 224, 3], {}),
    "resnet_v2_152": ("resnet_v2.resnet_v2_152", [2, 224, 224, 3], {}),
    "resnet_v2_200": ("resnet_v2.resnet_v2_200", [2, 224, 224, 3], {}),
}  # fmt: skip
SCOPES = {
    "inception_v1": "inception_v1_arg_scope",
    "inception_v2": "inception_v2_arg_scope",
    "inception_v3": "inception_v3_arg_scope",
    "alexnet": "alexnet_v2_arg_scope",
    "overfeat": "overfeat_arg_scope",
    "vgg": "vgg_arg_scope",
    "resnet_v1": "resnet_arg_scope",
    "resnet_v2": "resnet_arg_scope",
}
TYPES = (
    "Conv2D", "MaxPool", "AvgPool", "Mean", "ConcatV2", "Squeeze", "Softmax", "FusedBatchNorm",
    "FusedBatchNormV3", "Relu", "Pad",
)  # fmt: skip
WHOLE = (
    "alexnet_v2",
    "overfeat",
    "vgg_16",
    "inception_v1",
    "inception_v2",
    "inception_v3",
    "resnet_v1_50",
    "resnet_v2_50",
)


def describe(tf: Any, slim: Any, nets: Any, name: str) -> dict[str, Any]:
    """What a net of `NETS` is made of, as lines."""
    path, shape, options = NETS[name]
    module, function = path.split(".")
    scope = SCOPES.get(module) or SCOPES[function]
    with tf.Graph().as_default() as graph:
        with slim.arg_scope(getattr(getattr(nets, module), scope)()):
            inputs = tf.placeholder(tf.float32, shape, name="inputs")
            net, end_points = getattr(getattr(nets, module), function)(inputs, **options)
        trainable = {v.op.name for v in tf.trainable_variables()}
        variables = [
            f"{v.op.name} {v.shape.as_list()}{'' if v.op.name in trainable else ' fixed'}"
            for v in tf.global_variables()
        ]
        points = [
            f"{key} {value.op.name.partition('/dropout/')[0]} {value.shape.as_list()}"
            for key, value in end_points.items()
        ]
        # Dilated convolutions are other nodes here.
        types = [kind for kind in TYPES if kind != "Conv2D" or "output_stride" not in options]
        nodes = [node_line(op) for op in graph.get_operations() if op.type in types]
        collections = {
            key: len(tf.get_collection(key))
            for key in ("model_variables", "regularization_losses", "update_ops", "moving_vars")
        }
    return {
        "net": f"{net.op.name} {net.shape.as_list()}",
        "variables": variables,
        "end_points": points,
        "nodes": nodes,
        "collections": collections,
    }


def node_line(op: Any) -> str:
    """A node: its name, type, what it does to the first input's shape."""
    kind = "FusedBatchNorm" if op.type.startswith("FusedBatchNorm") else op.type
    line = f"{op.name} {kind} {op.inputs[0].shape} {op.outputs[0].shape}"
    if kind in ("Conv2D", "MaxPool", "AvgPool"):
        line += f" {op.get_attr('padding').decode()}"
    if kind == "FusedBatchNorm":
        line += f" {op.get_attr('is_training')} {op.get_attr('epsilon'):.4g}"
    return line


def digest(lines: list[str]) -> str:
    """A short name of many lines."""
    return f"{len(lines)} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:16]}"


def shortened(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Digests of the lines that are not written as they are."""
    whole = ("variables", "end_points") if name in WHOLE else ()
    return {
        key: digest(value) if isinstance(value, list) and key not in whole else value
        for key, value in facts.items()
    }


def main() -> None:
    import tensorflow as tf
    import tensorflow.contrib.slim.nets as nets
    from tensorflow.contrib import slim

    facts = {name: shortened(name, describe(tf, slim, nets, name)) for name in NETS}
    path = Path(__file__).parent / "contrib/slim_nets.json"
    path.write_text(json.dumps(facts, indent=0) + "\n")


if __name__ == "__main__":
    main()
