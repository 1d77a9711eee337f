"""Graphs, steps and options whose profiles are compared with TensorFlow's; each takes the module `tf`.

`tests/golden/make_profiler_goldens.py` runs them with TensorFlow. Nothing of flowstone is imported here.
"""

from __future__ import annotations

from typing import Any

# The lines of this text are the lines of the views by code: both runs have them alike.
MODEL = """
def build(tf):
    x = tf.placeholder(tf.float32, [4, 8, 8, 3], name="x")
    with tf.name_scope("net"):
        w = variable(tf, "w", [3, 3, 3, 5])
        h = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", name="conv")
        h = tf.reshape(h, [4, -1], name="flat")
        v = variable(tf, "v", [320, 10])
        y = tf.matmul(h, v, name="mm")
        y = tf.nn.bias_add(y, variable(tf, "b", [10]), name="biased")
    for _ in range(2):
        y = tf.square(y, name="square")
    with tf.control_dependencies([y]):
        return tf.reduce_mean(y, name="loss")
def variable(tf, name, shape):
    result = F.VariableV2(tf, shape, name)
    F.train(tf, result)
    return result
"""


class Raw:
    """Makes single nodes, whichever package it is given."""

    @staticmethod
    def VariableV2(tf: Any, shape: list[int], name: str) -> Any:
        return tf.raw_ops.VariableV2(shape=shape, dtype=tf.float32, name=name)

    @staticmethod
    def train(tf: Any, tensor: Any) -> None:
        """Has the profiler take it for a trainable variable."""
        tf.get_default_graph().add_to_collection("trainable_variables", tensor)


def build_model(tf: Any) -> Any:
    """A graph of a convolution and a product, made by the lines of MODEL."""
    names: dict[str, Any] = {"F": Raw}
    exec(compile(MODEL, "model.py", "exec"), names)
    graph = tf.Graph()
    with graph.as_default():
        names["build"](tf)
    return graph


_RUN = """node_stats {{ node_name: "{name}" all_start_micros: {start} op_end_rel_micros: {micros}
  memory {{ allocator_name: "cpu" total_bytes: {bytes} peak_bytes: {peak} live_bytes: {live} }}
  output {{ tensor_description {{ allocation_description {{ requested_bytes: {live} }} }} }} }}"""


def step(device: str = "CPU:0", slower: int = 1) -> str:
    """A RunMetadata as text: what a step of the graph could have taken."""
    nodes = [
        ("x", 1, 0, 0, 0), ("net/w", 2, 540, 540, 540), ("net/conv", 2100, 9000, 7000, 5120),
        ("net/flat", 3, 0, 0, 0), ("net/v", 2, 12800, 12800, 12800), ("net/mm", 450, 160, 160, 160),
        ("net/biased", 40, 160, 160, 160), ("square", 11, 160, 160, 160), ("square", 12, 160, 160, 160),
        ("square_1", 9, 0, 0, 0), ("loss", 14, 4, 4, 4), ("extra/node", 5, 8, 8, 8),
    ]  # fmt: skip
    runs, start = [], 1000
    for name, micros, total, peak, live in nodes:
        micros *= slower
        runs.append(_RUN.format(name=name, start=start, micros=micros, bytes=total, peak=peak, live=live))
        start += micros
    place = f"/job:localhost/replica:0/task:0/device:{device}"
    text = f'dev_stats {{ device: "{place}" {" ".join(runs)} }}'
    if device.startswith("GPU"):
        kernel = 'node_stats { node_name: "net/conv:Conv2D" all_start_micros: 1010 op_end_rel_micros: 1900 }'
        text += f' dev_stats {{ device: "{place}/stream:all" {kernel} }}'
    return f"step_stats {{ {text} }}"


ALL = [
    "micros", "bytes", "peak_bytes", "residual_bytes", "output_bytes", "params", "float_ops", "occurrence",
    "device", "op_types", "input_shapes",
]  # fmt: skip
_LINES = {"show_name_regexes": ["model.py.*"]}

# Name of the case: view, whether there is a step, the options to begin with, and calls on their builder.
Case = Any  # a tuple of these four
CASES: dict[str, Case] = {
    "parameters": ("scope", "", "trainable_variables_parameter", []),
    "parameters by kind": ("op", "", "trainable_variables_parameter", []),
    "operations": ("scope", "", "float_operation", []),
    "operations by kind": ("op", "", "float_operation", []),
    "operations by data flow": ("graph", "", "float_operation", []),
    "operations by line": ("code", "", "float_operation", [("with_node_names", _LINES)]),
    "operations in a step": ("scope", "CPU:0", "float_operation", []),
    "time": ("scope", "CPU:0", "time_and_memory", []),
    "time by kind": ("op", "CPU:0", "time_and_memory", []),
    "time by data flow": ("graph", "CPU:0", "time_and_memory", []),
    "time by line": ("code", "CPU:0", "time_and_memory", [("with_node_names", _LINES)]),
    "time on a gpu": ("scope", "GPU:0", "time_and_memory", []),
    "everything": ("scope", "CPU:0", "", [("select", ALL)]),
    "everything by data flow": ("graph", "CPU:0", "", [("select", ALL)]),
    "everything by line": ("code", "CPU:0", "", [("select", ALL), ("with_node_names", _LINES)]),
    "nothing selected": ("scope", "", "", [("select", [])]),
    "memory on a host": ("graph", "CPU:0", "", [("select", ["peak_bytes", "cpu_micros"])]),
    "shapes by kind": ("op", "CPU:0", "", [("select", ["input_shapes", "occurrence", "micros"])]),
    "one level": ("scope", "", "", [("with_max_depth", 2), ("select", ["params"])]),
    "two kinds": ("op", "", "", [("with_max_depth", 1), ("select", ["float_ops"])]),
    "start": (
        "scope", "", "", [("with_node_names", {"start_name_regexes": ["net.*"]}), ("select", ["params"])],
    ),
    "start of data flow": (
        "graph", "", "", [("with_node_names", {"start_name_regexes": ["net/mm"]}), ("select", ["params"])],
    ),
    "start of kinds": (
        "op", "", "", [("with_node_names", {"start_name_regexes": ["MatMul"]}), ("select", ["float_ops"])],
    ),
    "hide": ("scope", "", "", [("with_node_names", {"hide_name_regexes": ["net"]}), ("select", ["params"])]),
    "trim": ("graph", "", "", [("with_node_names", {"trim_name_regexes": [".*mm"]}), ("select", ["params"])]),
    "trim lines": (
        "code", "", "float_operation",
        [("with_node_names", {"show_name_regexes": [".*build"], "trim_name_regexes": ["model.py:6.*"]})],
    ),
    "types": (
        "scope", "CPU:0", "", [("with_accounted_types", ["Square", "MatMul"]), ("select", ["float_ops"])],
    ),
    "types by line": (
        "code", "CPU:0", "",
        [("with_accounted_types", ["Square"]), ("select", ["float_ops"]), ("with_node_names", _LINES)],
    ),
    "only what is shown": (
        "scope", "CPU:0", "",
        [("with_min_memory", [100]), ("select", ["params", "bytes"]), ("account_displayed_op_only", True)],
    ),
    "kinds that are shown": (
        "op", "CPU:0", "",
        [
            ("with_node_names", {"show_name_regexes": [".*2.*|M.*"]}), ("select", ["float_ops", "bytes"]),
            ("account_displayed_op_only", True), ("order_by", "bytes"),
        ],
    ),
    "at least two runs": ("scope", "CPU:0", "", [("with_min_occurrence", 2), ("select", ["occurrence"])]),
    "kinds by number": ("op", "CPU:0", "", [("order_by", "occurrence"), ("select", ["occurrence"])]),
    "least time": ("graph", "CPU:0", "", [("with_min_execution_time", [20]), ("order_by", "output_bytes")]),
    "least parameters": ("scope", "", "", [("with_min_parameters", 100), ("select", ["params"])]),
}  # fmt: skip


def options(builder: Any, case: Case) -> dict[str, Any]:
    """The options of a case; `builder` is the class ProfileOptionBuilder."""
    _, _, begin, calls = case
    built = builder(getattr(builder, begin)()) if begin else builder()
    for name, value in calls:
        if isinstance(value, dict):
            getattr(built, name)(**value)
        elif name.startswith("with_min_") and isinstance(value, list):
            getattr(built, name)(*value)
        else:
            getattr(built, name)(value)
    return built.build()  # type: ignore[no-any-return]


# ---- floating-point operations: name, op, shapes of inputs, attributes

_IMAGES = [2, 8, 8, 3]
_HALF = {"strides": [1, 2, 2, 1], "padding": "SAME"}
_WINDOW = {**_HALF, "ksize": [1, 3, 2, 1]}
_BINARY = (
    "Add Sub Mul RealDiv Maximum Minimum Pow SquaredDifference "
    "Greater GreaterEqual Less LessEqual Equal NotEqual"
)  # fmt: skip
OPERATIONS: list[tuple[str, list[Any], dict[str, Any]]] = [
    *((name, [[2, 3], [3]], {}) for name in _BINARY.split()),
    *((name, [[], [2, 1]], {}) for name in ("Add", "SquaredDifference", "Equal")),
    *((name, [[2, 3]], {}) for name in ("Neg", "Reciprocal", "Rsqrt", "Log", "Square", "L2Loss", "Softmax")),
    ("Softmax", [[4, 5, 6]], {}),
    ("RsqrtGrad", [[2, 3], [2, 3]], {}),
    ("AddN", [[[2, 3]] * 3], {}),
    ("AddN", [[[2, 3]]], {}),
    *((name, [_IMAGES, (0, 1, 2, 3)], {}) for name in ("Sum", "Mean")),
    *((name, [_IMAGES, (1,)], {"keep_dims": True}) for name in ("Sum", "Mean")),
    *((name, [[], ()], {}) for name in ("Sum", "Mean")),
    *((name, [_IMAGES, 0], {}) for name in ("ArgMax", "ArgMin")),
    ("BiasAdd", [[2, 3], [3]], {}),
    ("BiasAdd", [[2, 3, 4, 5], [3]], {"data_format": "NCHW"}),
    ("BiasAddGrad", [[2, 3]], {}),
    ("BiasAddGrad", [[2, 3, 4, 5]], {"data_format": "NCHW"}),
    ("MatMul", [[2, 3], [3, 7]], {}),
    ("MatMul", [[3, 2], [7, 3]], {"transpose_a": True, "transpose_b": True}),
    ("BatchMatMul", [[5, 2, 3], [5, 3, 7]], {}),
    ("BatchMatMul", [[5, 6, 2, 3], [5, 6, 7, 3]], {"adj_y": True}),
    ("Conv2D", [_IMAGES, [3, 2, 3, 5]], _HALF),
    ("Conv2D", [_IMAGES, [3, 2, 3, 5]], {**_HALF, "strides": [1, 1, 1, 1], "padding": "VALID"}),
    ("Conv2DBackpropFilter", [_IMAGES, (3, 2, 3, 5), [2, 4, 4, 5]], _HALF),
    ("Conv2DBackpropInput", [(2, 8, 8, 3), [3, 2, 3, 5], [2, 4, 4, 5]], _HALF),
    ("Conv2DBackpropFilter", [[2, 9, 7, 3], (3, 2, 3, 5), [2, 4, 3, 5]], {**_HALF, "padding": "VALID"}),
    ("Conv2DBackpropInput", [(2, 9, 7, 3), [3, 2, 3, 5], [2, 4, 3, 5]], {**_HALF, "padding": "VALID"}),
    ("DepthwiseConv2dNative", [_IMAGES, [3, 2, 3, 4]], _HALF),
    ("Conv3D", [[2, 4, 8, 8, 3], [2, 3, 2, 3, 5]], {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}),
    ("Dilation2D", [_IMAGES, [3, 2, 3]], {**_HALF, "rates": [1, 1, 1, 1]}),
    ("MaxPool", [_IMAGES], _WINDOW),
    ("AvgPool", [_IMAGES], _WINDOW),
    ("MaxPoolGrad", [_IMAGES, [2, 4, 4, 3], [2, 4, 4, 3]], _WINDOW),
    ("AvgPoolGrad", [(2, 8, 8, 3), [2, 4, 4, 3]], _WINDOW),
    ("AssignAdd", ["variable", [2, 3]], {}),
    ("AssignSub", ["variable", [2, 3]], {}),
    ("Relu", [[2, 3]], {}),
    ("Exp", [[2, 3]], {}),
    ("Square", [[None, 3]], {}),
    ("MatMul", [[None, 3], [3, 7]], {}),
]  # fmt: skip


def node(tf: Any, op: str, inputs: list[Any], attributes: dict[str, Any]) -> Any:
    """The node of a case. A list is the shape of a placeholder, a list of lists is several, a tuple or
    a number is a constant."""

    def tensor(value: Any) -> Any:
        if value == "variable":
            return Raw.VariableV2(tf, [2, 3], "variable")
        if isinstance(value, (tuple, int)):
            return tf.constant(value, tf.int32)
        if value and isinstance(value[0], list):
            return [tensor(each) for each in value]
        return tf.placeholder(tf.float32, value)

    function = getattr(tf.raw_ops, op)
    arguments = dict(zip(NAMES[op], map(tensor, inputs)))
    made = function(**arguments, **attributes)
    return getattr(made, "op", made)


# The names of the inputs.
_INPUTS = {
    f"{_BINARY} BatchMatMul": "x y",
    "Neg Reciprocal Rsqrt Log Square Exp": "x",
    "L2Loss": "t",
    "Softmax": "logits",
    "RsqrtGrad": "y dy",
    "AddN": "inputs",
    "Sum Mean": "input axis",
    "ArgMax ArgMin": "input dimension",
    "BiasAdd": "value bias",
    "BiasAddGrad": "out_backprop",
    "MatMul": "a b",
    "Conv2D DepthwiseConv2dNative Conv3D Dilation2D": "input filter",
    "Conv2DBackpropFilter": "input filter_sizes out_backprop",
    "Conv2DBackpropInput": "input_sizes filter out_backprop",
    "MaxPool": "input",
    "AvgPool": "value",
    "MaxPoolGrad": "orig_input orig_output grad",
    "AvgPoolGrad": "orig_input_shape grad",
    "AssignAdd AssignSub": "ref value",
    "Relu": "features",
}
NAMES = {op: names.split() for ops, names in _INPUTS.items() for op in ops.split()}

# The cases whose messages are compared, and the devices for which advice is.
MESSAGES = ["everything", "everything by data flow", "time by kind", "time by line", "time on a gpu"]
ADVICE = ["CPU:0", "GPU:0"]
