"""Programs with recurrent cells, run alike by flowstone and, for the golden files, by TensorFlow.

Each is a function of the module ``tf`` that builds a graph and returns tensors. `run` gives their values and
the gradients of a weighted sum of them, with variables set to values that depend on name and shape alone;
`node_lines` the nodes that they need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[[Any], Any]] = {}
# Those whose nodes are compared too.
NAMED: list[str] = []
BATCH, TIME, DEPTH = 2, 3, 4


def program(named: bool = False) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Adds a program to the table."""

    def add(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        PROGRAMS[function.__name__] = function
        if named:
            NAMED.append(function.__name__)
        return function

    return add


def steps(tf: Any, depth: int = DEPTH, dtype: str = "float32") -> list[Any]:
    """Inputs [BATCH, depth] for every step."""
    values = np.sin(np.arange(TIME * BATCH * depth)).reshape(TIME, BATCH, depth).astype(dtype)
    return [tf.constant(value, name=f"x{i}") for i, value in enumerate(values)]


def whole(tf: Any, depth: int = DEPTH, dtype: str = "float32") -> Any:
    """Inputs [BATCH, TIME, depth]."""
    values = np.sin(np.arange(BATCH * TIME * depth)).reshape(BATCH, TIME, depth).astype(dtype)
    return tf.constant(values, name="x")


def two_steps(tf: Any, cell: Any) -> Any:
    """The cell called twice."""
    x = steps(tf)
    output, state = cell(x[0], cell.zero_state(BATCH, tf.float32))
    second, state = cell(x[1], state)
    return [output, second, state]


# ---- cells


@program()
def basic_rnn(tf: Any) -> Any:
    return two_steps(tf, tf.nn.rnn_cell.BasicRNNCell(5))


@program()
def gru(tf: Any) -> Any:
    return two_steps(tf, tf.nn.rnn_cell.GRUCell(5))


@program()
def gru_initialized(tf: Any) -> Any:
    return two_steps(
        tf,
        tf.nn.rnn_cell.GRUCell(
            5,
            activation="relu",
            kernel_initializer=tf.ones_initializer(),
            bias_initializer=tf.zeros_initializer(),
            name="g",
        ),
    )


@program()
def basic_lstm(tf: Any) -> Any:
    return two_steps(tf, tf.nn.rnn_cell.BasicLSTMCell(5))


@program()
def basic_lstm_joined(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.BasicLSTMCell(5, state_is_tuple=False, activation=tf.nn.softsign, forget_bias=0.5)
    return two_steps(tf, cell)


@program()
def lstm(tf: Any) -> Any:
    return two_steps(tf, tf.nn.rnn_cell.LSTMCell(5))


@program(named=True)
def lstm_everything(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.LSTMCell(5, use_peepholes=True, cell_clip=0.3, num_proj=3, proj_clip=0.2)
    return two_steps(tf, cell)


@program()
def lstm_joined(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.LSTMCell(5, use_peepholes=True, num_proj=3, state_is_tuple=False)
    return two_steps(tf, cell)


@program()
def lstm_in_parts(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.LSTMCell(4, num_proj=4, num_unit_shards=2, num_proj_shards=2)
    return two_steps(tf, cell)


@program(named=True)
def stack(tf: Any) -> Any:
    cells = [tf.nn.rnn_cell.BasicLSTMCell(5), tf.nn.rnn_cell.GRUCell(3)]
    return two_steps(tf, tf.nn.rnn_cell.MultiRNNCell(cells))


@program()
def stack_joined(tf: Any) -> Any:
    cells = [tf.nn.rnn_cell.GRUCell(5), tf.nn.rnn_cell.GRUCell(3)]
    return two_steps(tf, tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=False))


@program()
def residual(tf: Any) -> Any:
    return two_steps(tf, tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.GRUCell(DEPTH)))


@program()
def residual_by_function(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.GRUCell(DEPTH)
    return two_steps(tf, tf.nn.rnn_cell.ResidualWrapper(cell, residual_fn=lambda x, y: x * 2.0 + y))


@program()
def on_a_device(tf: Any) -> Any:
    return two_steps(tf, tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.GRUCell(3), "/cpu:0"))


@program()
def several_cells(tf: Any) -> Any:
    rnn_cell, x = tf.nn.rnn_cell, steps(tf)
    first, second, named = (rnn_cell.BasicLSTMCell(5, name=name) for name in (None, None, "mine"))
    state = first.zero_state(BATCH, tf.float32)
    again = first(x[1], state)
    return [
        first(x[0], state),
        second(x[0], state),
        again,
        named(x[0], state),
        rnn_cell.LSTMCell(5)(x[0], state, scope="other"),
        rnn_cell.MultiRNNCell([rnn_cell.GRUCell(5)])(x[0], (state[0],), scope="several"),
    ]


@program()
def shared_cell(tf: Any) -> Any:
    x = steps(tf)
    outputs = []
    for reuse in (None, True):
        with tf.variable_scope("model", reuse=reuse):
            outputs.append(tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(5), x, dtype=tf.float32))
    cell = tf.nn.rnn_cell.GRUCell(2)
    return [*outputs, *(tf.nn.static_rnn(cell, x, dtype=tf.float32) for _ in range(2))]


@program()
def parts_and_resources(tf: Any) -> Any:
    x = steps(tf)
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        in_parts = tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(5), x, dtype=tf.float32)
    with tf.variable_scope("r", use_resource=True, initializer=tf.ones_initializer()):
        resources = tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(5), x, dtype=tf.float32)
    return [in_parts, resources]


def own_cell(tf: Any) -> Any:
    """A user's cell with nested inputs, state and outputs."""

    class PairCell(tf.nn.rnn_cell.RNNCell):  # type: ignore[misc, name-defined]
        state_size = (5, (3,))
        output_size = (5, 3)

        def call(self, inputs: Any, state: Any) -> Any:
            x, y = inputs
            w, v = tf.get_variable("w", [DEPTH, 5]), tf.get_variable("v", [2, 3])
            first = tf.tanh(tf.matmul(x, w) + state[0])
            second = tf.matmul(y, v) + state[1][0]
            return (first, second), (first, (second,))

    return PairCell()


@program()
def own_cell_called(tf: Any) -> Any:
    cell = own_cell(tf)
    inputs = (steps(tf)[0], steps(tf, 2)[1])
    return [cell(inputs, cell.zero_state(BATCH, tf.float32)), *cell.variables]


# ---- lists of inputs


@program(named=True)
def static(tf: Any) -> Any:
    cells = [tf.nn.rnn_cell.LSTMCell(5), tf.nn.rnn_cell.LSTMCell(3)]
    return tf.nn.static_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), steps(tf), dtype=tf.float32)


@program()
def static_from_state(tf: Any) -> Any:
    return tf.nn.static_rnn(
        tf.nn.rnn_cell.GRUCell(5), steps(tf), initial_state=tf.ones([BATCH, 5]), scope="here"
    )


@program(named=True)
def static_lengths(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.BasicLSTMCell(5)
    return tf.nn.static_rnn(cell, steps(tf), dtype=tf.float32, sequence_length=[1, 3])


@program()
def static_early_stop(tf: Any) -> Any:
    cells = [tf.nn.rnn_cell.BasicLSTMCell(5), tf.nn.rnn_cell.GRUCell(3)]
    x = [tf.placeholder_with_default(value, [None, DEPTH]) for value in steps(tf)]
    lengths = tf.constant([1, 2], tf.int64)
    cell = tf.nn.rnn_cell.MultiRNNCell(cells)
    return tf.nn.static_rnn(cell, x, dtype=tf.float32, sequence_length=lengths)


@program()
def static_nested(tf: Any) -> Any:
    x = list(zip(steps(tf), steps(tf, 2)))
    return tf.nn.static_rnn(own_cell(tf), x, sequence_length=[1, 3], dtype=tf.float32)


@program()
def static_float64(tf: Any) -> Any:
    x = steps(tf, dtype="float64")
    return tf.nn.static_rnn(tf.nn.rnn_cell.LSTMCell(5, num_proj=2), x, dtype=tf.float64)


@program()
def static_both_ways(tf: Any) -> Any:
    cells = tf.nn.rnn_cell.BasicLSTMCell(5), tf.nn.rnn_cell.BasicLSTMCell(3)
    return tf.nn.static_bidirectional_rnn(*cells, steps(tf), dtype=tf.float32)


@program()
def static_both_ways_lengths(tf: Any) -> Any:
    cells = tf.nn.rnn_cell.GRUCell(5), tf.nn.rnn_cell.GRUCell(3)
    return tf.nn.static_bidirectional_rnn(
        *cells, steps(tf), dtype=tf.float32, sequence_length=[2, 3], scope="both"
    )


class StateSaver:
    """Gives ones and counts what it is given."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def state(self, name: str) -> Any:
        return self.tf.ones([BATCH, 5], name=f"state_{name}")

    def save_state(self, name: str, value: Any) -> Any:
        return self.tf.identity(value, name=f"saved_{name}")


@program(named=True)
def state_saving(tf: Any) -> Any:
    saver = StateSaver(tf)
    return [
        tf.nn.static_state_saving_rnn(tf.nn.rnn_cell.GRUCell(5), steps(tf), saver, "s", scope="one"),
        tf.nn.static_state_saving_rnn(tf.nn.rnn_cell.BasicLSTMCell(5), steps(tf), saver, ("a", "b")),
    ]


# ---- loops


@program()
def dynamic(tf: Any) -> Any:
    return tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(5), whole(tf), dtype=tf.float32)


@program(named=True)
def dynamic_lengths(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.GRUCell(5)
    return tf.nn.dynamic_rnn(cell, whole(tf), sequence_length=[1, 3], dtype=tf.float32)


@program()
def dynamic_all_end_early(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.GRUCell(5)
    return tf.nn.dynamic_rnn(cell, whole(tf), sequence_length=[1, 2], dtype=tf.float32)


@program()
def dynamic_time_major(tf: Any) -> Any:
    x = tf.transpose(whole(tf), [1, 0, 2])
    state = tf.ones([BATCH, 5])
    cell = tf.nn.rnn_cell.GRUCell(5)
    return tf.nn.dynamic_rnn(cell, x, initial_state=state, time_major=True, scope="here")


@program(named=True)
def dynamic_unknown_sizes(tf: Any) -> Any:
    x = tf.placeholder_with_default(whole(tf), [None, None, DEPTH])
    cells = [tf.nn.rnn_cell.LSTMCell(5, use_peepholes=True), tf.nn.rnn_cell.GRUCell(2)]
    return tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.MultiRNNCell(cells),
        x,
        sequence_length=tf.constant([1, 3], tf.int64),
        dtype=tf.float32,
        swap_memory=True,
        parallel_iterations=4,
    )


@program()
def dynamic_nested(tf: Any) -> Any:
    x = (whole(tf), whole(tf, 2))
    return tf.nn.dynamic_rnn(own_cell(tf), x, sequence_length=[1, 3], dtype=tf.float32)


@program()
def dynamic_float64_state(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.BasicLSTMCell(5)
    state = cell.zero_state(BATCH, tf.float64)
    return tf.nn.dynamic_rnn(cell, whole(tf, dtype="float64"), initial_state=state)


@program()
def dynamic_wrapped(tf: Any) -> Any:
    rnn_cell = tf.nn.rnn_cell
    cells = [rnn_cell.DropoutWrapper(rnn_cell.LSTMCell(DEPTH)) for _ in range(2)]
    with tf.variable_scope("net"), tf.variable_scope("encoder"):
        cell = rnn_cell.ResidualWrapper(rnn_cell.MultiRNNCell(cells))
        return tf.nn.dynamic_rnn(cell, whole(tf), dtype=tf.float32)


@program()
def dynamic_both_ways(tf: Any) -> Any:
    cells = tf.nn.rnn_cell.BasicLSTMCell(5), tf.nn.rnn_cell.BasicLSTMCell(3)
    return tf.nn.bidirectional_dynamic_rnn(*cells, whole(tf), dtype=tf.float32)


@program()
def dynamic_both_ways_lengths(tf: Any) -> Any:
    cells = tf.nn.rnn_cell.GRUCell(5), tf.nn.rnn_cell.GRUCell(3)
    return tf.nn.bidirectional_dynamic_rnn(*cells, whole(tf), sequence_length=[3, 2], dtype=tf.float32)


@program()
def dynamic_both_ways_time_major(tf: Any) -> Any:
    x = tf.transpose(whole(tf), [1, 0, 2])
    cells = tf.nn.rnn_cell.GRUCell(5), tf.nn.rnn_cell.GRUCell(3)
    return tf.nn.bidirectional_dynamic_rnn(*cells, x, time_major=True, dtype=tf.float32)


@program()
def own_cell_without_layers(tf: Any) -> Any:
    class Cell(tf.nn.rnn_cell.RNNCell):  # type: ignore[misc, name-defined]
        state_size = 3
        output_size = 3

        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
            with tf.variable_scope(scope or type(self).__name__):
                w = tf.get_variable("w", [DEPTH + 3, 3])
                output = tf.tanh(tf.matmul(tf.concat([inputs, state], 1), w))
                return output, output

    static_outputs = tf.nn.static_rnn(Cell(), steps(tf), dtype=tf.float32, scope="static")
    return [static_outputs, tf.nn.dynamic_rnn(Cell(), whole(tf), dtype=tf.float32)]


@program(named=True)
def raw(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.LSTMCell(5)
    read, lengths = array_of_steps(tf), tf.constant([1, 3])

    def loop_fn(time: Any, output: Any, state: Any, _: Any) -> Any:
        next_state = cell.zero_state(BATCH, tf.float32) if output is None else state
        finished = time >= lengths
        following = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([BATCH, DEPTH]), lambda: read(time))
        return finished, following, next_state, output, None

    outputs, state, _ = tf.nn.raw_rnn(cell, loop_fn)
    return [outputs.stack(), state]


@program()
def raw_with_loop_state(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.GRUCell(5)
    read, lengths = array_of_steps(tf), tf.constant([2, 3])

    def loop_fn(time: Any, output: Any, state: Any, kept: Any) -> Any:
        if output is None:
            state, emitted = cell.zero_state(BATCH, tf.float32), tf.zeros([6])
            kept = (tf.constant(0), tf.TensorArray(tf.float32, 0, dynamic_size=True))
        else:
            emitted = tf.concat([output, output[:, :1]], 1)
            kept = (kept[0] + 1, kept[1].write(time - 1, output))
        finished = time >= lengths
        following = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([BATCH, DEPTH]), lambda: read(time))
        return finished, following, state, emitted, kept

    outputs, state, kept = tf.nn.raw_rnn(cell, loop_fn, scope="raw")
    return [outputs.stack(), state, kept[0], kept[1].stack()]


def array_of_steps(tf: Any) -> Callable[[Any], Any]:
    """A function that reads the inputs of a step."""
    return tf.TensorArray(tf.float32, TIME).unstack(tf.transpose(whole(tf), [1, 0, 2])).read


# ---- running them


def flat(structure: Any) -> list[Any]:
    """The leaves of nested lists and tuples."""
    if isinstance(structure, (list, tuple)):
        return [leaf for part in structure for leaf in flat(part)]
    return [structure]


def value_of(variable: Any) -> np.ndarray:
    """What a variable is set to."""
    shape = variable.shape.as_list()
    values = np.sin(np.arange(np.prod(shape, dtype=int)) * 0.7 + len(variable.name)) * 0.4
    return values.reshape(shape).astype(variable.dtype.base_dtype.as_numpy_dtype)


def run(tf: Any, name: str) -> dict[str, np.ndarray]:
    """The results by ``output/0`` …, and `condensed` gradients by ``gradient/NAME`` of the variable."""
    with tf.Graph().as_default():
        tensors = [tf.convert_to_tensor(x) for x in flat(PROGRAMS[name](tf))]
        loss = tf.add_n([weighted_sum(tf, x) for x in tensors if x.dtype.is_floating])
        variables = tf.global_variables()
        found = zip(variables, tf.gradients(loss, variables))
        gradients = {f"gradient/{v.name}": dv for v, dv in found if dv is not None}
        with tf.Session() as session:
            for variable in variables:
                variable.load(value_of(variable), session)
            values, slopes = session.run([tensors, gradients])
    outputs = {f"output/{i}": value for i, value in enumerate(values)}
    return outputs | {key: condensed(dv) for key, dv in slopes.items()}


def condensed(gradient: np.ndarray) -> np.ndarray:
    """Three numbers that tell a gradient from others: sums under different weights."""
    flat_gradient = gradient.astype(np.float64).ravel()
    return np.array(
        [flat_gradient @ np.cos(np.arange(flat_gradient.size) * rate) for rate in (0.0, 0.1, 1.3)]
    )


def weighted_sum(tf: Any, x: Any) -> Any:
    """The sum of the elements, each times its number."""
    weights = tf.reshape(tf.range(1, tf.size(x) + 1), tf.shape(x))
    return tf.reduce_sum(tf.cast(x, tf.float64) * tf.cast(weights, tf.float64))


def shape_lines(tf: Any, name: str) -> list[str]:
    """The results' static shapes, in one line, and ``variable NAME SHAPE`` for all variables, in order."""
    with tf.Graph().as_default():
        shapes = " ".join(str(x.shape) for x in flat(PROGRAMS[name](tf)))
        return [f"shapes {shapes}", *(f"variable {v.name} {v.shape}" for v in tf.global_variables())]


def node_lines(tf: Any, name: str) -> list[str]:
    """``NAME TYPE`` for all nodes that the results need, sorted."""
    with tf.Graph().as_default():
        pending = [x.op for x in flat(PROGRAMS[name](tf))]
        needed = set()
        while pending:
            op = pending.pop()
            if op not in needed:
                needed.add(op)
                pending += [x.op for x in op.inputs] + list(op.control_inputs)
    return sorted(f"{op.name} {op.type}" for op in needed)
