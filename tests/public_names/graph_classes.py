"""Calls of the public members of graphs, operations, tensors, variables, scopes, types and shapes."""

from class_calls import ClassCalls

GRAPH = """
it = tf.get_default_graph()
x = tf.constant([1.0, 2.0], name='x')
y = tf.square(x, name='y')
it.add_to_collection('mine', x)
def within(scope, make=lambda: tf.constant(1.0, name='inner')):
    with scope:
        return make().op
def fails(call):
    try:
        call()
    except Exception as error:
        return type(error)
def changed(graph, change, ask):
    with graph.as_default():
        tf.constant(1.0, name='only')
    change(graph)
    return ask(graph)
"""
GRAPH_CALLS = {
    "__init__": "tf.Graph().version",
    "add_to_collection": "[it.add_to_collection('one', 1), it.get_collection('one')][1]",
    "add_to_collections": "[it.add_to_collections(['two', 'three'], 2), it.get_collection('three')][1]",
    "as_default": "within(tf.Graph().as_default()).graph is it",
    "as_graph_def": "[each.op for each in it.as_graph_def(add_shapes=True).node[:2]]",
    "as_graph_element": "[it.as_graph_element('x:0') is x, it.as_graph_element('y') is y.op]",
    "building_function": "it.building_function",
    "clear_collection": (
        "changed(tf.Graph(), lambda g: (g.add_to_collection('a', 1), g.clear_collection('a')),"
        " lambda g: g.get_collection('a'))"
    ),
    "collections": (
        "sorted(changed(tf.Graph(), lambda g: g.add_to_collection('a', 1), lambda g: g.collections))"
    ),
    "colocate_with": "within(it.colocate_with(x.op)).colocation_groups()",
    "container": (
        "within(it.container('box'), lambda: tf.FIFOQueue(1, tf.int32).queue_ref).get_attr('container')"
    ),
    "control_dependencies": "[each.name for each in within(it.control_dependencies([y])).control_inputs]",
    "create_op": "it.create_op('Neg', [x], [tf.float32], name='negated').outputs[0]",
    "device": "within(it.device('/cpu:0')).device",
    "finalize": (
        "fails(lambda: changed(tf.Graph(), lambda g: g.finalize(), lambda g: within(g.as_default())))"
    ),
    "finalized": "changed(tf.Graph(), lambda g: g.finalize(), lambda g: [g.finalized, it.finalized])",
    "get_all_collection_keys": "'mine' in it.get_all_collection_keys()",
    "get_collection": "[len(it.get_collection('mine')), it.get_collection('mine', scope='z')]",
    "get_collection_ref": "it.get_collection_ref('mine') is it.get_collection_ref('mine')",
    "get_name_scope": "within(it.name_scope('deep'), lambda: tf.constant(it.get_name_scope())).outputs[0]",
    "get_operation_by_name": "it.get_operation_by_name('y').type",
    "get_operations": "[each.name for each in it.get_operations()[:2]]",
    "get_tensor_by_name": "it.get_tensor_by_name('y:0')",
    "gradient_override_map": (
        "within(it.gradient_override_map({'Const': 'Mine'})).get_attr('_gradient_op_type')"
    ),
    "graph_def_versions": "type(it.graph_def_versions).__name__",
    "is_feedable": "[it.is_feedable(x), it.prevent_feeding(x), it.is_feedable(x)][::2]",
    "is_fetchable": "it.is_fetchable(x)",
    "name_scope": "[within(it.name_scope('scope')).name, within(it.name_scope('scope')).name]",
    "prevent_feeding": "[it.prevent_feeding(y), it.is_feedable(y)][1]",
    "prevent_fetching": (
        "changed(tf.Graph(), lambda g: g.prevent_fetching(g.get_operation_by_name('only')),"
        " lambda g: g.is_fetchable(g.get_operation_by_name('only')))"
    ),
    "seed": (
        "changed(tf.Graph(), lambda g: within(g.as_default(), lambda: [tf.set_random_seed(3), x][1]),"
        " lambda g: g.seed)"
    ),
    "unique_name": "[it.unique_name('fresh'), it.unique_name('fresh'), it.unique_name('fresh', False)]",
    "version": "changed(tf.Graph(), lambda g: None, lambda g: g.version)",
}
OPERATION = """
with tf.control_dependencies([tf.no_op(name='before')]):
    x = tf.constant([1.0, 2.0], name='x')
with tf.device('/cpu:0'):
    y = tf.cast(x, tf.int32, name='y')
z = tf.add(y, y, name='z')
it = y.op
def evaluated(call):
    with tf.Session():
        return call()
"""
OPERATION_CALLS = {
    "__init__": "type(it).__name__",
    "colocation_groups": "it.colocation_groups()",
    "control_inputs": "[[each.name for each in op.control_inputs] for op in [it, x.op]]",
    "device": "it.device",
    "get_attr": "[it.get_attr('SrcT'), it.get_attr('DstT')]",
    "graph": "it.graph is tf.get_default_graph()",
    "inputs": "[each.name for each in it.inputs]",
    "name": "it.name",
    "node_def": "[it.node_def.name, it.node_def.op, list(it.node_def.input), it.node_def.device]",
    "op_def": "[it.op_def.name, [each.name for each in it.op_def.input_arg]]",
    "outputs": "it.outputs",
    "run": "evaluated(it.run)",
    "traceback": "len(it.traceback) > 0",
    "traceback_with_start_lines": "len(it.traceback_with_start_lines) > 0",
    "type": "it.type",
    "values": "list(it.values())",
}
TENSOR_CALLS = {
    "OVERLOADABLE_OPERATORS": "{'__add__', '__getitem__', '__matmul__'} <= set(y.OVERLOADABLE_OPERATORS)",
    "__init__": "type(y).__name__",
    "consumers": "[each.name for each in x.consumers()]",
    "device": "y.device",
    "dtype": "y.dtype",
    "eval": "evaluated(lambda: z.eval({y: [5, 6]}))",
    "get_shape": "y.get_shape()",
    "graph": "y.graph is tf.get_default_graph()",
    "name": "y.name",
    "op": "y.op.name",
    "set_shape": "[[p.set_shape([None, 3]), p.shape][1] for p in [tf.placeholder(tf.int32)]]",
    "shape": "y.shape",
    "value_index": "[each.value_index for each in tf.split(x, 2)]",
}
VARIABLE = """
it = tf.Variable([1, 2], name='v', trainable=False, constraint=tf.abs)
slices = tf.IndexedSlices(tf.constant([10]), tf.constant([1]))
def loaded(variable):
    with tf.Session() as session:
        variable.load([8, 9], session)
        return session.run(variable)
def evaluated(variable):
    with tf.Session() as session:
        session.run(variable.initializer)
        return variable.eval()
def reshaped(shape):
    variable = tf.Variable(tf.placeholder(tf.float32), collections=[], validate_shape=False)
    variable.set_shape(shape)
    return variable.shape
"""
VARIABLE_CALLS = {
    "SaveSliceInfo": "tf.Variable.SaveSliceInfo('whole', [4, 2], [2, 0], [2, 2]).spec",
    "__init__": "[it, it in tf.global_variables(), it in tf.trainable_variables()]",
    "assign": "run(it.assign([5, 6]), it)",
    "assign_add": "run(it.assign_add([5, 6]), it)",
    "assign_sub": "run(it.assign_sub([5, 6]), it)",
    "constraint": "it.constraint is tf.abs",
    "count_up_to": "[run(v.count_up_to(3), v) for v in [tf.Variable(1)]]",
    "device": "it.device",
    "dtype": "it.dtype.base_dtype",
    "eval": "evaluated(it)",
    "from_proto": "tf.Variable.from_proto(it.to_proto())",
    "get_shape": "it.get_shape()",
    "graph": "it.graph is tf.get_default_graph()",
    "initial_value": "it.initial_value",
    "initialized_value": "it.initialized_value()",
    "initializer": "[it.initializer.type, it.initializer.name]",
    "load": "loaded(it)",
    "name": "it.name",
    "op": "it.op.type",
    "read_value": "it.read_value()",
    "scatter_sub": "run(it.scatter_sub(slices), it)",
    "set_shape": "reshaped([2, None])",
    "shape": "it.shape",
    "to_proto": "[it.to_proto().variable_name, it.to_proto().initializer_name, it.to_proto().snapshot_name]",
    "value": "it.value()",
}
SCOPE = """
half = tf.constant_initializer(0.5)
def settings(**more):
    with tf.variable_scope('area', initializer=half, **more) as scope:
        return scope
def changed(change):
    scope = settings()
    change(scope)
    return scope
it = settings()
with tf.variable_scope(it):
    tf.get_variable('w', [2])
    tf.get_variable('local', [1], collections=[tf.GraphKeys.LOCAL_VARIABLES])
class Store(object):
    def get_variable(self, name, **rest):
        return [name, rest['shape'], rest['initializer'] is half]
getter = lambda real, name, **rest: real(name, **rest)
"""
SCOPE_CALLS = {
    "__init__": "tf.VariableScope(None, 'plain').name",
    "caching_device": "settings(caching_device='/cpu:0').caching_device",
    "constraint": "settings(constraint=tf.abs).constraint is tf.abs",
    "custom_getter": "callable(settings(custom_getter=getter).custom_getter)",
    "dtype": "[it.dtype, settings(dtype=tf.float64).dtype]",
    "get_collection": "it.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)",
    "get_variable": "it.get_variable(Store(), 'fresh', shape=[3])",
    "global_variables": "it.global_variables()",
    "initializer": "it.initializer is half",
    "local_variables": "it.local_variables()",
    "name": "it.name",
    "original_name_scope": "[it.original_name_scope, settings().original_name_scope]",
    "partitioner": "settings(partitioner=getter).partitioner is getter",
    "regularizer": "settings(regularizer=tf.nn.l2_loss).regularizer is tf.nn.l2_loss",
    "reuse": "[it.reuse, settings(reuse=True).reuse]",
    "reuse_variables": "changed(lambda scope: scope.reuse_variables()).reuse",
    "set_caching_device": "changed(lambda scope: scope.set_caching_device('/cpu:0')).caching_device",
    "set_custom_getter": "changed(lambda scope: scope.set_custom_getter(getter)).custom_getter is getter",
    "set_dtype": "changed(lambda scope: scope.set_dtype(tf.float64)).dtype",
    "set_initializer": "changed(lambda scope: scope.set_initializer(getter)).initializer is getter",
    "set_partitioner": "changed(lambda scope: scope.set_partitioner(getter)).partitioner is getter",
    "set_regularizer": "changed(lambda scope: scope.set_regularizer(getter)).regularizer is getter",
    "set_use_resource": "changed(lambda scope: scope.set_use_resource(True)).use_resource",
    "trainable_variables": "it.trainable_variables()",
    "use_resource": "[it.use_resource, settings(use_resource=False).use_resource]",
}
TYPES = "every = [tf.bool, tf.uint8, tf.int64, tf.float16, tf.float32, tf.complex128, tf.string, tf.qint8]"
TYPE_CALLS = {
    "__init__": "tf.DType(tf.int32.as_datatype_enum)",
    "as_datatype_enum": "[t.as_datatype_enum for t in every]",
    "as_numpy_dtype": "[np.dtype(t.as_numpy_dtype).name for t in every[:-1]]",
    "base_dtype": "tf.as_dtype('float32_ref').base_dtype",
    "is_bool": "[t.is_bool for t in every]",
    "is_compatible_with": "[t.is_compatible_with(tf.float32) for t in every]",
    "is_complex": "[t.is_complex for t in every]",
    "is_floating": "[t.is_floating for t in every]",
    "is_integer": "[t.is_integer for t in every]",
    "is_numpy_compatible": "[t.is_numpy_compatible for t in every]",
    "is_quantized": "[t.is_quantized for t in every]",
    "is_unsigned": "[bool(t.is_unsigned) for t in every]",
    "limits": "[t.limits for t in [tf.uint8, tf.float32]]",
    "max": "[t.max for t in every[1:3]] + [float(t.max) for t in every[3:5]]",
    "min": "[t.min for t in every[1:3]] + [float(t.min) for t in every[3:5]]",
    "name": "[t.name for t in every]",
    "real_dtype": "[t.real_dtype for t in every]",
    "size": "[t.size for t in every if t != tf.string]",
}
SHAPES = """
it = tf.TensorShape([2, None, 3])
other, unknown = tf.TensorShape([None, 4, 3]), tf.TensorShape(None)
def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error)
"""
SHAPE_CALLS = {
    "__init__": "[tf.TensorShape([1, tf.Dimension(2)]), tf.TensorShape(it), tf.TensorShape(3), unknown]",
    "as_list": "[it.as_list(), outcome(unknown.as_list)]",
    "as_proto": "[d.size for d in it.as_proto().dim]",
    "assert_has_rank": "[outcome(lambda: it.assert_has_rank(n)) for n in [3, 4]]",
    "assert_is_compatible_with": "[outcome(lambda: it.assert_is_compatible_with(s)) for s in [other, [1]]]",
    "assert_is_fully_defined": "[outcome(s.assert_is_fully_defined) for s in [it, tf.TensorShape([1])]]",
    "assert_same_rank": "[outcome(lambda: it.assert_same_rank(s)) for s in [other, [1]]]",
    "concatenate": "[it.concatenate(other), it.concatenate(unknown)]",
    "dims": "[d.value for d in it.dims]",
    "is_compatible_with": "[it.is_compatible_with(s) for s in [other, unknown, [2, 2, 2]]]",
    "is_fully_defined": "[it.is_fully_defined(), tf.TensorShape([]).is_fully_defined()]",
    "merge_with": "[it.merge_with(other), outcome(lambda: it.merge_with([1]))]",
    "most_specific_compatible_shape": "[it.most_specific_compatible_shape(s) for s in [it, unknown]]",
    "ndims": "[it.ndims, unknown.ndims]",
    "num_elements": "[it.num_elements(), tf.TensorShape([2, 3]).num_elements()]",
    "with_rank": "[it.with_rank(3), unknown.with_rank(2), outcome(lambda: it.with_rank(2))]",
    "with_rank_at_least": "[it.with_rank_at_least(2), outcome(lambda: it.with_rank_at_least(4))]",
    "with_rank_at_most": "[it.with_rank_at_most(4), outcome(lambda: it.with_rank_at_most(2))]",
}
DIMENSION_CALLS = {
    "__init__": "[tf.Dimension(3).value, outcome(lambda: tf.Dimension(-1))]",
    "assert_is_compatible_with": (
        "[outcome(lambda: d.assert_is_compatible_with(3)) for d in map(tf.Dimension, [3, 4])]"
    ),
    "is_compatible_with": "[tf.Dimension(3).is_compatible_with(n) for n in [3, None, 4]]",
    "merge_with": "[tf.Dimension(None).merge_with(4).value, outcome(lambda: tf.Dimension(3).merge_with(4))]",
    "value": "[tf.Dimension(3).value, tf.Dimension(None).value]",
}
DEVICE = """
it = tf.DeviceSpec('worker', 1, 2, 'CPU', 0)
"""
DEVICE_CALLS = {
    "__init__": "[it.job, it.replica, it.task, it.device_type, it.device_index]",
    "from_string": "tf.DeviceSpec.from_string('/job:ps/task:3').to_string()",
    "job": "it.job",
    "merge_from": "[[d.merge_from(tf.DeviceSpec(task=5)), d.to_string()][1] for d in [tf.DeviceSpec('ps')]]",
    "parse_from_string": "tf.DeviceSpec().parse_from_string('/job:ps/device:GPU:1').to_string()",
    "replica": "it.replica",
    "task": "it.task",
    "to_string": "it.to_string()",
}
KEYS = """
ACTIVATIONS ASSET_FILEPATHS BIASES CONCATENATED_VARIABLES COND_CONTEXT EVAL_STEP GLOBAL_STEP
GLOBAL_VARIABLES INIT_OP LOCAL_INIT_OP LOCAL_RESOURCES LOCAL_VARIABLES LOSSES MODEL_VARIABLES
MOVING_AVERAGE_VARIABLES QUEUE_RUNNERS READY_FOR_LOCAL_INIT_OP READY_OP REGULARIZATION_LOSSES
RESOURCES SAVEABLE_OBJECTS SAVERS SUMMARIES SUMMARY_OP TABLE_INITIALIZERS
TRAINABLE_RESOURCE_VARIABLES TRAINABLE_VARIABLES TRAIN_OP UPDATE_OPS VARIABLES WEIGHTS WHILE_CONTEXT
"""
KEY_CALLS = {"__init__": "type(it).__name__", **{key: f"it.{key}" for key in KEYS.split()}}
TABLES = [
    ClassCalls("tf.Graph", GRAPH, GRAPH_CALLS),
    ClassCalls("tf.Operation", OPERATION, OPERATION_CALLS),
    ClassCalls("tf.Tensor", OPERATION, TENSOR_CALLS),
    ClassCalls("tf.Variable", VARIABLE, VARIABLE_CALLS),
    ClassCalls("tf.VariableScope", SCOPE, SCOPE_CALLS),
    ClassCalls("tf.DType", TYPES, TYPE_CALLS),
    ClassCalls("tf.TensorShape", SHAPES, SHAPE_CALLS),
    ClassCalls("tf.Dimension", SHAPES, DIMENSION_CALLS),
    ClassCalls("tf.DeviceSpec", DEVICE, DEVICE_CALLS),
    ClassCalls("tf.GraphKeys", "it = tf.GraphKeys()", KEY_CALLS),
]
