"""Sets and sparse tensors of 100,000 elements: a run of one operation, whose result is not fetched."""

from tf1 import tf  # isort: skip
import numpy as np
from shapes import SPARSE_COLUMNS, sets_of_numbers, sets_of_words, sparse_parts

from measuring import median_seconds, report

PRODUCT_COLUMNS = (1, 64)


def held(value):
    """A variable with this value, so that nothing is folded or fed."""
    return tf.Variable(tf.constant(value), trainable=False)


def held_sparse(seed):
    indices, values, sizes = sparse_parts(seed)
    return tf.SparseTensor(held(indices), held(values), sizes)


def ms(build):
    """Milliseconds of a run of what `build` adds to a graph."""
    with tf.Graph().as_default(), tf.Session() as session:
        result = build()
        session.run(tf.global_variables_initializer())
        return 1e3 * median_seconds(session.make_callable(result.op))  # a tf.group of it is optimised away


def pair(sets):
    return held(sets(1)), held(sets(2))


for kind, sets in (("numbers", sets_of_numbers), ("words", sets_of_words)):
    for name in ("union", "intersection", "difference"):
        function = getattr(tf.sets, f"set_{name}")
        report(f"{name} of {kind}", ms(lambda f=function, s=sets: f(*pair(s))), "ms")

for name in ("add", "maximum"):
    function = getattr(tf.sparse, name)
    report(name, ms(lambda f=function: f(held_sparse(1), held_sparse(2))), "ms")
for name in ("softmax", "reorder", "transpose"):
    function = getattr(tf.sparse, name)
    report(name, ms(lambda f=function: f(held_sparse(1))), "ms")
for axis in (0, 1):
    report(f"reduce_sum, axis {axis}", ms(lambda a=axis: tf.sparse.reduce_sum(held_sparse(1), a)), "ms")
report("to_dense", ms(lambda: tf.sparse.to_dense(held_sparse(1))), "ms")
for columns in PRODUCT_COLUMNS:
    dense = np.random.RandomState(0).randn(SPARSE_COLUMNS, columns).astype(np.float32)
    product = ms(lambda b=dense: tf.sparse.matmul(held_sparse(1), held(b)))
    report(f"matmul, {columns} columns", product, "ms")
