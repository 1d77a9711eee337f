"""Calls of the functions of `tf` that make, find, initialise, share and update variables."""

from class_calls import ClassCalls

VALUES = """
def alone(make):
    with tf.Graph().as_default():
        return make()
def var(value=(1.0, 2.0, 3.0), **arguments):
    return tf.Variable(np.array(value, np.float32), **arguments)
def changed(change, value=(1.0, 2.0, 3.0)):
    v = var(value)
    return run(change(v), v)
def names(found):
    return [each.op.name for each in found]
def collected(ask):
    tf.Variable(1, name='v', trainable=False)
    tf.Variable(2, name='w')
    tf.get_variable('local', [], collections=['local_variables'])
    tf.add_to_collection('model_variables', tf.Variable(4, name='model'))
    m = tf.Variable(5.0, name='m')
    tf.train.ExponentialMovingAverage(0.5).apply([m])
    return names(ask())
def initialised(make):
    v = tf.Variable(7, name='v', collections=['c', 'local_variables', 'variables'])
    with tf.Session() as session:
        op = make(v)
        session.run(op)
        return [op.name, session.run(v)]
def within(scope, make):
    with scope as entered:
        return make(entered)
"""
UPDATES = {
    "assign": (
        "[changed(lambda v: tf.assign(v, [5.0, 6, 7], True, False, 'a')), run(tf.assign(var(), [4.0],"
        " False))]"
    ),
    "assign_add": "changed(lambda v: tf.assign_add(v, [5.0, 6, 7], True, 'a'))",
    "assign_sub": "changed(lambda v: tf.assign_sub(v, [5.0, 6, 7], True, 'a'))",
    "count_up_to": "[run(tf.count_up_to(v, 3, 'a'), v) for v in [tf.Variable(2)]]",
    "scatter_nd_add": "changed(lambda v: tf.scatter_nd_add(v, [[2], [0], [2]], [1.0, 3, 4], True, 'a'))",
    "scatter_nd_sub": "changed(lambda v: tf.scatter_nd_sub(v, [[2], [0], [2]], [1.0, 3, 4], True, 'a'))",
    "scatter_nd_update": "changed(lambda v: tf.scatter_nd_update(v, [[2], [0]], [1.0, 3], False, 'a'))",
    "scatter_update": "changed(lambda v: tf.scatter_update(v, [2, 0], [8.0, 3], False, 'a'))",
    **{
        f"scatter_{name}": f"changed(lambda v: tf.scatter_{name}(v, [2, 0, 2], [8.0, 3, 2], True, 'a'))"
        for name in ("add", "div", "mul", "sub")
    },
}
FINDING = {
    "all_variables": "alone(lambda: collected(tf.all_variables))",
    "global_variables": "[alone(lambda: collected(lambda: tf.global_variables(s))) for s in [None, 'm']]",
    "local_variables": "[alone(lambda: collected(lambda: tf.local_variables(s))) for s in [None, 'm']]",
    "model_variables": "[alone(lambda: collected(lambda: tf.model_variables(s))) for s in [None, 'v']]",
    "moving_average_variables": (
        "[alone(lambda: collected(lambda: tf.moving_average_variables(s))) for s in [None, 'v']]"
    ),
    "trainable_variables": (
        "[alone(lambda: collected(lambda: tf.trainable_variables(s))) for s in [None, 'm']]"
    ),
}
INITIALISING = {
    "assert_variables_initialized": (
        "[alone(lambda: [var(), run(tf.assert_variables_initialized())][1]),"
        " alone(lambda: tf.assert_variables_initialized([]))]"
    ),
    "global_variables_initializer": (
        "[alone(lambda: [var(name='v'), tf.global_variables_initializer().name][1])]"
    ),
    "initialize_all_tables": (
        "alone(lambda: [tf.initialize_all_tables('t').name, run(tf.initialize_all_tables())])"
    ),
    "initialize_all_variables": "alone(lambda: initialised(lambda v: tf.initialize_all_variables()))",
    "initialize_local_variables": "alone(lambda: initialised(lambda v: tf.initialize_local_variables()))",
    "initialize_variables": "alone(lambda: initialised(lambda v: tf.initialize_variables([v], 'i')))",
    "is_variable_initialized": (
        "[alone(lambda: run(tf.is_variable_initialized(var()))),"
        " alone(lambda: run(tf.is_variable_initialized(var(collections=[]))))]"
    ),
    "local_variables_initializer": "alone(lambda: initialised(lambda v: tf.local_variables_initializer()))",
    "report_uninitialized_variables": (
        "alone(lambda: [run(tf.report_uninitialized_variables([var(name='v', collections=[]),"
        " var(name='w')], 'r')),"
        " run(tf.report_uninitialized_variables())])"
    ),
    "tables_initializer": "alone(lambda: [tf.tables_initializer('t').name, run(tf.tables_initializer())])",
    "variables_initializer": (
        "[alone(lambda: initialised(lambda v: tf.variables_initializer([v], 'i'))),"
        " alone(lambda: tf.variables_initializer([]).type)]"
    ),
}
SHARING = {
    "AUTO_REUSE": (
        "alone(lambda: names([within(tf.variable_scope('s', reuse=tf.AUTO_REUSE),"
        " lambda s: tf.get_variable('v', []))"
        " for each in range(2)]))"
    ),
    "create_partitioned_variables": (
        "alone(lambda: [[v.op.name, v.shape, v.dtype.name, v in tf.trainable_variables()] for v in"
        " tf.create_partitioned_variables([5, 2], [2, 1], lambda *a, **k: np.ones([3, 2]), tf.float32, False,"
        " None, 'p')])"
    ),
    "get_local_variable": (
        "alone(lambda: [names([tf.get_local_variable('v', [2], tf.int32)]), names(tf.local_variables()),"
        " tf.trainable_variables()])"
    ),
    "get_variable": (
        "[alone(lambda: [[v.op.name, v.dtype.name, v.shape, run(v), v in tf.trainable_variables(), v in"
        " tf.get_collection('c'), tf.get_collection('regularization_losses')[0].op.name]"
        " for v in [tf.get_variable("
        "'v', [2], tf.float64, tf.ones_initializer(), tf.reduce_sum, False, ['c', 'variables'])]]),"
        " alone(lambda: [each.dtype.name for each in [tf.get_variable('v', initializer=3),"
        " tf.get_variable('u', [1])]])]"
    ),
    "get_variable_scope": (
        "[tf.get_variable_scope().name, within(tf.variable_scope('s'),"
        " lambda s: tf.get_variable_scope() is s)]"
    ),
    "make_template": (
        "alone(lambda: [[run(t(2.0)), run(t(3.0)), names(tf.global_variables())]"
        " for t in [tf.make_template('t',"
        " lambda x, y: tf.get_variable('v', [], initializer=tf.ones_initializer()) * x * y, y=5.0)]])"
    ),
    "no_regularizer": "tf.no_regularizer(3.0)",
    "variable_op_scope": (
        "alone(lambda: within(tf.variable_op_scope([tf.constant(1)], None, 'd', tf.ones_initializer()),"
        " lambda s: [s.name, tf.constant(1).op.name, run(tf.get_variable('v', []))]))"
    ),
    "variable_scope": (
        "alone(lambda: [within(tf.variable_scope(n, 'd'), lambda s: [s.name, tf.get_variable('v',"
        " []).op.name,"
        " tf.constant(1).op.name]) for n in ['s', None, None]])"
    ),
    "fixed_size_partitioner": (
        "tf.fixed_size_partitioner(3, 1)(shape=tf.TensorShape([4, 9]), dtype=tf.float32)"
    ),
    "min_max_variable_partitioner": (
        "[tf.min_max_variable_partitioner(5, 1, 64, 16)(tf.TensorShape([4, 9]), dtype=t)"
        " for t in [tf.float32, tf.string, tf.int8]]"
    ),
    "variable_axis_size_partitioner": (
        "[tf.variable_axis_size_partitioner(64, 1, 8, m)(tf.TensorShape([4, 9]), dtype=t)"
        " for t, m in [(tf.float32, None), (tf.string, None), (tf.float32, 2)]]"
    ),
}
INITIALIZERS = {
    "constant_initializer": "tf.constant_initializer([1, 2], tf.float64, True)([2])",
    "glorot_normal_initializer": "spread(tf.glorot_normal_initializer(3), 2 / 150)",
    "ones_initializer": "tf.ones_initializer(tf.int32)([2])",
    "orthogonal_initializer": (
        "[tf.matmul(q, q, transpose_a=True) for q in [tf.orthogonal_initializer(2.0, 3, tf.float64)([3, 2])]]"
    ),
    "random_normal_initializer": "spread(tf.random_normal_initializer(5.0, 3.0, 3, tf.float64), 9, 5)",
    "random_uniform_initializer": "spread(tf.random_uniform_initializer(-6, 6, 3, tf.float64), 12)",
    "truncated_normal_initializer": (
        "spread(tf.truncated_normal_initializer(5.0, 3.0, 3, tf.float64), 6.97, 5)"
    ),
    "uniform_unit_scaling_initializer": (
        "spread(tf.uniform_unit_scaling_initializer(2.0, 3, tf.float64), 4 / 100)"
    ),
    "variance_scaling_initializer": (
        "spread(tf.variance_scaling_initializer(2.0, 'fan_out', 'normal', 3, tf.float64), 2 / 50)"
    ),
    "zeros_initializer": "tf.zeros_initializer(tf.int32)([2])",
}
# TensorFlow 1.15.5 leaves the type out that this one is given.
GLOROT = {
    "glorot_uniform_initializer": "spread(tf.glorot_uniform_initializer(3), 2 / 150)",
}
VALUES += """
def spread(initializer, variance, mean=0.0):
    found = run(initializer([100, 50]))
    near = abs(found.mean() - mean) < 0.1 * variance ** 0.5
    return [found.dtype.name, list(found.shape), bool(near), bool(0.9 < found.var() / variance < 1.1)]
"""
TABLES = [
    ClassCalls("tf", VALUES, {**UPDATES, **FINDING, **INITIALISING, **SHARING, **INITIALIZERS}),
    ClassCalls("tf", VALUES, GLOROT, "1.4.1"),
]
