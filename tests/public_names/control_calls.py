"""Calls of the functions of `tf` that control a program's flow and differentiate it."""

from class_calls import ClassCalls

VALUES = """
x = tf.constant([1.0, 2.0, 3.0])
w = tf.constant(2.0)
n = tf.constant(5)
y = tf.reduce_sum(x * x * w)
yes = tf.placeholder_with_default(True, [])
def alone(make):
    with tf.Graph().as_default():
        return run(*make())
def counted(count=[]):
    count.append(1)
    return np.float64(len(count))
"""
FLOW = {
    "Print": "[tf.Print(x, [x, n], 'seen', 1, 2, 'a'), tf.Print(x, [x]).op.type]",
    "add_check_numerics_ops": (
        "alone(lambda: [[tf.log(tf.constant([1.0])), tf.add_check_numerics_ops()][1]])"
    ),
    "case": (
        "[tf.case([(yes, lambda: n)], lambda: -n, True, True, 'a'),"
        " tf.case({tf.logical_not(yes): lambda: n}, default=lambda: n * 2),"
        " tf.case([(yes, lambda: x), (yes, lambda: -x)])]"
    ),
    "cond": (
        "[tf.cond(yes, lambda: [n], lambda: [-n], True, 'a'), tf.cond(yes, lambda: [n], lambda: [-n]),"
        " tf.cond(tf.logical_not(yes), fn1=lambda: x, fn2=lambda: -x)]"
    ),
    "control_dependencies": (
        "[[c.name for c in op.control_inputs] for op in"
        " [within(tf.control_dependencies([w, w.op])), within(tf.control_dependencies(None))]]"
    ),
    "foldl": (
        "[tf.foldl(lambda a, e: a * 2 + e, x, 1.0, 1, False, True, 'a'), tf.foldl(lambda a, e: a - e, x)]"
    ),
    "foldr": (
        "[tf.foldr(lambda a, e: a * 2 + e, x, 1.0, 1, False, True, 'a'), tf.foldr(lambda a, e: a - e, x)]"
    ),
    "group": "[run(tf.group(w, x.op, name='a')), tf.group(w, name='b').type, tf.group().type]",
    "map_fn": (
        "[tf.map_fn(lambda e: tf.to_int32(e * 2), x, tf.int32, 1, False, True, False, 'a'),"
        " tf.map_fn(lambda e: e[0] + e[1], (x, -x), tf.float32)]"
    ),
    "no_op": "[tf.no_op('nothing').name, run(tf.no_op())]",
    "py_func": (
        "[tf.py_func(lambda a, b: [a + b, a.sum()], [x, w], [tf.float32, tf.float32], False, 'a'),"
        " tf.py_func(counted, [], tf.float64).op.type, tf.py_func(counted, [], tf.float64, False).op.type]"
    ),
    "scan": (
        "[tf.scan(lambda a, e: a + e, x, 10.0, 1, False, True, False, True, 'a'),"
        " tf.scan(lambda a, e: a * e, x), tf.scan(lambda a, e: (a[0] + e, e), x, (0.0, 0.0))]"
    ),
    "tuple": (
        "[tf.tuple([x, None, w], 'a', [n]), [e.op.type for e in tf.tuple([x, w])],"
        " type(tf.tuple([x])).__name__]"
    ),
    "while_loop": (
        "[tf.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, tf.concat([v, v[:1]], 0)), [0, x],"
        " [tf.TensorShape([]), tf.TensorShape([None])], 1, False, True, 'a'),"
        " tf.while_loop(lambda i: i < 9, lambda i: i * 2, [n])]"
    ),
}
GRADIENTS = {
    "gradients": (
        "[tf.gradients([y, x], [x, w], [3.0, x], 'a', True, True, tf.AggregationMethod.ADD_N),"
        " tf.gradients(y, [x, n]), tf.gradients(x * w + w, w, stop_gradients=[x]),"
        " tf.gradients(tf.gather(x, [0, 2]), x)[0].indices]"
    ),
    "hessians": "[tf.hessians(y, x, 'a', True, True), tf.hessians(tf.exp(y / 9), [x, x])[1]]",
    "AggregationMethod": (
        "[tf.AggregationMethod.ADD_N, tf.AggregationMethod.DEFAULT, tf.AggregationMethod.EXPERIMENTAL_TREE,"
        " tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N]"
    ),
    "NoGradient": "tf.NoGradient('WalkedWithoutGradient')",
    "NotDifferentiable": "tf.NotDifferentiable('WalkedAndNotDifferentiable')",
    "RegisterGradient": "negated_gradient()",
}
VALUES += """
def within(scope):
    with scope:
        return tf.constant(1.0).op
def negated_gradient(name=str(id(tf.Graph()))):
    tf.RegisterGradient('Negated' + name)(lambda op, gradient: -gradient)
    with tf.get_default_graph().gradient_override_map({'Square': 'Negated' + name}):
        return tf.gradients(tf.square(w), w)
"""
TABLES = [ClassCalls("tf", VALUES, {**FLOW, **GRADIENTS})]
