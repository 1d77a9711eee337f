"""Calls of the public members of the classes of `tf.nn.rnn_cell`."""

from class_calls import ClassCalls, product
from layer_classes import MEMBERS

OWN_MEMBERS = {
    "__init__": "[type(it).__name__, it.trainable, y]",
    "activity_regularizer": "it.activity_regularizer",
    "add_update": "[(l, l.add_update(tf.assign_add(n, 1.0)))[0] and run(l.updates, n) for l in [make()]]",
    "add_variable": "make().add_variable('extra', [2], initializer=tf.constant_initializer(4.0))",
    "apply": "applied",
    "build": "[(l, l.build(x.shape))[0].built for l in [make()]]",
    "call": "it.call(x, state)",
    "get_input_at": "unused.get_input_at(0)",
    "get_input_shape_at": "unused.get_input_shape_at(0)",
    "get_output_at": "unused.get_output_at(0)",
    "get_output_shape_at": "unused.get_output_shape_at(0)",
    "get_updates_for": (
        "[(l, l.add_update(tf.assign(n, 3.0)))[0] and run(l.get_updates_for(None), n) for l in [make()]]"
    ),
    "inbound_nodes": "len(unused.inbound_nodes)",
    "input": "unused.input",
    "input_shape": "unused.input_shape",
    "outbound_nodes": "len(unused.outbound_nodes)",
    "output": "unused.output",
    "output_shape": "unused.output_shape",
    "output_size": "it.output_size",
    "state_size": "it.state_size",
    "zero_state": "it.zero_state(2, tf.float64)",
}


def made_by(call: str, before: str = "") -> str:
    """A program with `make`, a cell `it` that it made, its `x`, `state` and result `y`, a variable `n`."""
    return f"""
n = tf.Variable(1.0, trainable=False)
x = tf.constant(np.sin(np.arange(6)).reshape([2, 3]).astype('f'))
half = tf.constant_initializer(0.5)
cell = tf.nn.rnn_cell
{before}
make = lambda: {call}
with tf.variable_scope('run', initializer=half):
    it = make()
    state = it.zero_state(2, tf.float32)
    y = it(x, state)
with tf.variable_scope('applied', initializer=half):
    applied = make().apply(x, state)
unused = make()
"""


CELL = """
class Decay(tf.nn.rnn_cell.RNNCell):
    state_size = output_size = property(lambda self: 3)
    def call(self, inputs, state):
        return inputs + state, state + inputs * tf.get_variable('factor', [3], initializer=half)
"""
CELLS = {
    "BasicLSTMCell": made_by("cell.BasicLSTMCell(2)"),
    "BasicRNNCell": made_by("cell.BasicRNNCell(2)"),
    "GRUCell": made_by("cell.GRUCell(2, kernel_initializer=half)"),
    "LSTMCell": made_by("cell.LSTMCell(2, use_peepholes=True, cell_clip=0.4, num_proj=3)"),
    "MultiRNNCell": made_by("cell.MultiRNNCell([cell.BasicRNNCell(4), cell.BasicLSTMCell(2)])"),
    "RNNCell": made_by("Decay()", CELL),
}
WRAPPERS = {
    "DeviceWrapper": made_by("cell.DeviceWrapper(cell.BasicRNNCell(2), '/cpu:0')"),
    "DropoutWrapper": made_by("cell.DropoutWrapper(cell.GRUCell(2), output_keep_prob=1.0)"),
    "ResidualWrapper": made_by("cell.ResidualWrapper(cell.BasicRNNCell(3))"),
}
TUPLE = ClassCalls(
    "tf.nn.rnn_cell.LSTMStateTuple",
    "it = tf.nn.rnn_cell.LSTMStateTuple(tf.constant([1.0, 2.0]), h=tf.constant([3.0, 4.0]))\n"
    "numbers = tf.nn.rnn_cell.LSTMStateTuple(3, 7)",
    {
        "__init__": "it",
        "c": "it.c",
        "count": "[numbers.count(3), numbers.count(4)]",
        "dtype": "it.dtype",
        "h": "it.h",
        "index": "numbers.index(7)",
    },
)
COMMON = {**MEMBERS, **OWN_MEMBERS}
# In TensorFlow a wrapper's `call` takes no state and gives back its inputs; calling it steps the cell.
WRAPPED_CALL = {"call": "(it.call if it.call.__code__.co_argcount > 2 else it)(x, state)"}
TABLES = [
    *product("tf.nn.rnn_cell", CELLS, {key: call for key, call in COMMON.items() if key != "graph"}, {}),
    *product("tf.nn.rnn_cell", CELLS, {"graph": COMMON["graph"]}, {}, oracle="1.4.1"),
    *product("tf.nn.rnn_cell", WRAPPERS, {**COMMON, **WRAPPED_CALL}, {}),
    TUPLE,
]
