"""Calls of the public members of queues, accumulators, arrays of tensors, and sparse values."""

from class_calls import ClassCalls, product

QUEUE_MEMBERS = {
    "__init__": "[type(it).__name__, it.name]",
    "close": "[it.close().type, run(it.close(cancel_pending_enqueues=True), it.is_closed())]",
    "dequeue": "run(fill, it.dequeue())",
    "dequeue_many": "run(fill, it.dequeue_many(3))",
    "dequeue_up_to": "run(fill, it.close(), it.dequeue_up_to(5))",
    "dtypes": "it.dtypes",
    "enqueue": "run(it.enqueue(one), it.enqueue(one), it.size())",
    "enqueue_many": "run(it.enqueue_many(many), it.size())",
    "from_list": "run(fill, type(it).from_list(chosen, [make(), it]).dequeue())",
    "is_closed": "[run(it.is_closed()), run(it.close(), it.is_closed())]",
    "name": "it.name",
    "names": "it.names",
    "queue_ref": "[it.queue_ref.op.type, it.queue_ref.dtype.base_dtype]",
    "shapes": "it.shapes",
    "size": "[run(it.size()), run(fill, it.size())]",
}


def queue(call: str, one: str = "[[7.0, 7.5]]", many: str = "[[[1.0, 1.5]] * 3]") -> str:
    """A program with `make`, a queue `it` that it made, `one` element, `many`, and a step that fills it."""
    return f"""
make = lambda: {call}
one, many = {one}, {many}
it = make()
fill = it.enqueue_many(many)
chosen = tf.constant(1)
"""


QUEUES = {
    "FIFOQueue": queue("tf.FIFOQueue(10, [tf.float32], [[2]])"),
    "PaddingFIFOQueue": queue("tf.PaddingFIFOQueue(10, [tf.float32], [[None]])"),
    "PriorityQueue": queue(
        "tf.PriorityQueue(10, [tf.float32], [[]])",
        "[5, 0.5]",
        "[np.array([3, 1, 2], np.int64), [3.0, 1.0, 2.0]]",
    ),
    "QueueBase": queue(
        "tf.FIFOQueue(10, [tf.float32], [[2]], names=['x'])", "{'x': [7.0, 7.5]}", "{'x': [[1.0, 2.0]] * 3}"
    ),
    "RandomShuffleQueue": queue("tf.RandomShuffleQueue(10, 0, [tf.float32], [[2]], seed=1)"),
}
QUEUE_SPECIAL = {
    "QueueBase.__init__": (
        "run(fill, tf.QueueBase([tf.float32], [tf.TensorShape([2])], ['x'], it.queue_ref).dequeue()['x'])"
    ),
    "QueueBase.from_list": "run(fill, tf.QueueBase.from_list(chosen, [make(), it]).dequeue()['x'])",
    # On a closed queue TensorFlow's loses the elements that it has, with an error.
    "PriorityQueue.dequeue_up_to": "run(fill, it.dequeue_up_to(2))",
}
ACCUMULATOR = """
it = tf.ConditionalAccumulator(tf.float32, [2], name='gathered')
two = [it.apply_grad([1.0, 2.0]), it.apply_grad([3.0, 5.0], 1)]
"""
SPARSE_ACCUMULATOR = """
it = tf.SparseConditionalAccumulator(tf.float32, [3, 1], name='gathered')
two = [it.apply_grad([0, 2], [[1.0], [2.0]]), it.apply_grad([2], [[4.0]], [3, 1], 1)]
slices = tf.IndexedSlices(tf.constant([[6.0]]), tf.constant([1], tf.int64), tf.constant([3, 1], tf.int64))
"""
ACCUMULATOR_MEMBERS = {
    "__init__": "[type(it).__name__, it.name]",
    "accumulator_ref": "[it.accumulator_ref.op.type, it.accumulator_ref.dtype.base_dtype]",
    "dtype": "it.dtype",
    "name": "it.name",
    "num_accumulated": "[run(it.num_accumulated()), run(two, it.num_accumulated())]",
    "set_global_step": "run(it.set_global_step(1), two, it.num_accumulated())",
}
GRADIENT_MEMBERS = {
    "apply_grad": "run(two[0], it.num_accumulated())",
    "take_grad": "run(two, it.take_grad(2))",
}
ACCUMULATORS = [
    *product(
        "tf",
        {"ConditionalAccumulator": ACCUMULATOR, "SparseConditionalAccumulator": SPARSE_ACCUMULATOR},
        {**ACCUMULATOR_MEMBERS, **GRADIENT_MEMBERS},
        {
            "SparseConditionalAccumulator.apply_indexed_slices_grad": (
                "run(it.apply_indexed_slices_grad(slices), it.take_grad(1))"
            ),
            "SparseConditionalAccumulator.take_grad": "run(two, list(it.take_grad(2)))",
            "SparseConditionalAccumulator.take_indexed_slices_grad": (
                "[run(two, [s.indices, s.values, s.dense_shape]) for s in [it.take_indexed_slices_grad(2)]]"
            ),
        },
    ),
    *product(
        "tf",
        {"ConditionalAccumulatorBase": ACCUMULATOR},
        ACCUMULATOR_MEMBERS,
        {
            "ConditionalAccumulatorBase.__init__": (
                "[run(two, same.num_accumulated()) for same in "
                "[tf.ConditionalAccumulatorBase(it.dtype, None, it.accumulator_ref)]]"
            )
        },
    ),
]
ARRAY = """
empty = tf.TensorArray(tf.float32, size=3, element_shape=[2], clear_after_read=False)
it = empty.unstack([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
"""
ARRAY_CALLS = {
    "__init__": "tf.TensorArray(tf.int32, 4, True, tensor_array_name='mine').size()",
    "close": "it.close().type",
    "concat": "it.concat()",
    "dtype": "it.dtype",
    "flow": "it.flow.dtype",
    "gather": "it.gather([2, 0])",
    "grad": "[it.grad('source').dtype, run(it.grad('other').write(1, [7.0, 8.0]).read(1))]",
    "handle": "it.handle.dtype.base_dtype",
    "identity": "it.identity().read(1)",
    "read": "it.read(1)",
    "scatter": "tf.TensorArray(tf.float32, 3).scatter([2, 0, 1], [[1.0], [2.0], [3.0]]).stack()",
    "size": "it.size()",
    "split": "tf.TensorArray(tf.float32, 2).split([1.0, 2.0, 3.0, 4.0], [2, 2]).read(1)",
    "stack": "it.stack()",
    "unstack": "tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0]).read(1)",
    "write": "tf.TensorArray(tf.float32, 2).write(1, [2.0]).read(1)",
}
SPARSE = """
x = tf.SparseTensor([[0, 1], [2, 0]], [1.5, 2.5], [3, 2])
given = tf.SparseTensorValue([[0, 1], [2, 0]], [1.5, 2.5], [3, 2])
it = x
def values(sparse):
    return [sparse.indices, sparse.values, sparse.dense_shape]
"""
SPARSE_CALLS = {
    "__init__": "values(it)",
    "dense_shape": "it.dense_shape",
    "dtype": "it.dtype",
    "eval": "run_eval(it)",
    "from_value": "values(tf.SparseTensor.from_value(given))",
    "get_shape": "it.get_shape()",
    "graph": "it.graph is tf.get_default_graph()",
    "indices": "it.indices",
    "op": "it.op.type",
    "values": "it.values",
}
SPARSE_VALUE_CALLS = {
    "__init__": "list(given)",
    "count": "tf.SparseTensorValue(1, 2, 1).count(1)",
    "dense_shape": "given.dense_shape",
    "index": "tf.SparseTensorValue(1, 2, 3).index(3)",
    "indices": "given.indices",
    "values": "given.values",
}
SLICES = """
it = tf.IndexedSlices(tf.constant([[1.0], [2.0]], name='rows'), tf.constant([0, 2]), tf.constant([3, 1]))
"""
SLICES_CALLS = {
    "__init__": "tf.convert_to_tensor(it)",
    "dense_shape": "it.dense_shape",
    "device": "it.device",
    "dtype": "it.dtype",
    "graph": "it.graph is tf.get_default_graph()",
    "indices": "it.indices",
    "name": "it.name",
    "op": "it.op.name",
    "values": "it.values",
}
RUN_EVAL = """
def run_eval(sparse):
    with tf.Session():
        value = sparse.eval()
    return [value.indices, value.values, value.dense_shape]
"""
TABLES = [
    *product("tf", QUEUES, QUEUE_MEMBERS, QUEUE_SPECIAL),
    *ACCUMULATORS,
    ClassCalls("tf.TensorArray", ARRAY, ARRAY_CALLS),
    ClassCalls("tf.SparseTensor", SPARSE + RUN_EVAL, SPARSE_CALLS),
    ClassCalls("tf.SparseTensorValue", SPARSE, SPARSE_VALUE_CALLS),
    ClassCalls("tf.IndexedSlices", SLICES, SLICES_CALLS),
]
