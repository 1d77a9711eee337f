"""Calls of classes, constants and namespaces of later TensorFlows: the oracle is 2.21's compat.v1."""

from class_calls import ClassCalls

ORACLE = "2.21.0"

SPECS = """
S = tf.TensorSpec
a = S([2, None], tf.float32, 'a')
whole = tf.zeros([3, 2], name='whole')
sparse = tf.SparseTensor([[0]], [1], [3])
slices = tf.IndexedSlices(tf.zeros([2, 3]), tf.zeros([2], tf.int64))
array = tf.TensorArray(tf.float32, 3)
def names(spec):
    return repr(spec)
"""
OF_TF = {
    "IndexedSlicesSpec": "[names(tf.IndexedSlicesSpec([2, None], tf.int32)), names(tf.IndexedSlicesSpec()),"
    " tf.IndexedSlicesSpec([2]) == tf.IndexedSlicesSpec([2]), tf.IndexedSlicesSpec().value_type]",
    "NoneTensorSpec": "[tf.NoneTensorSpec() == tf.NoneTensorSpec(), repr(tf.NoneTensorSpec())]",
    "OptionalSpec": "tf.OptionalSpec(a) == tf.OptionalSpec(S([2, None], tf.float32, 'a'))",
    "SparseTensorSpec": "[names(tf.SparseTensorSpec([2, None], tf.int32)), names(tf.SparseTensorSpec()),"
    " tf.SparseTensorSpec([2]).shape, tf.SparseTensorSpec([2]).dtype, tf.SparseTensorSpec().value_type,"
    " tf.SparseTensorSpec([None], tf.int32).is_compatible_with(sparse),"
    " tf.SparseTensorSpec([4], tf.int32).is_compatible_with(sparse),"
    " names(tf.SparseTensorSpec.from_value(sparse))]",
    "TensorArraySpec": "[names(tf.TensorArraySpec([2, None], tf.int32)), names(tf.TensorArraySpec()),"
    " tf.TensorArraySpec([2]) == tf.TensorArraySpec([3]), tf.TensorArraySpec().value_type,"
    " names(tf.TensorArraySpec.from_value(array))]",
    "TensorSpec": "[names(a), names(S(None)), a == S([2, None], tf.float32, 'a'), a == S([2, None]), a != a,"
    " hash(a) == hash(S([2, None], tf.float32, 'a')), a.shape, a.dtype, a.name, a.value_type,"
    " names(S.from_tensor(whole)), names(S.from_tensor(whole, 'b')), names(S.from_spec(a)),"
    " names(S.from_spec(a, 'c'))]",
    "TensorSpec.relations": "[S([None, 2]).is_compatible_with(whole), S([4, 2]).is_compatible_with(whole),"
    " S([3, 2], tf.int32).is_compatible_with(whole), S([None, 3]).is_compatible_with(S([3, 2])),"
    " S([2]).is_compatible_with(np.zeros(2, np.float32)), S([2]).is_compatible_with([1.0, 2.0]),"
    " names(S([3, 2]).most_specific_compatible_type(S([4, 2]))), S([3, 2]).is_subtype_of(S([None, 2])),"
    " S([None, 2]).is_subtype_of(S([3, 2])),"
    " S([3, 2], name='a').most_specific_common_supertype([S([4, 2])])]",
    "TensorSpec.error": "S([3, 2]).most_specific_compatible_type(S([4, 2], tf.int32))",
    "TypeSpec": "[isinstance(a, tf.TypeSpec), isinstance(sparse, tf.TypeSpec)]",
    "TypeSpec.error": "tf.TypeSpec()",
    "type_spec_from_value": "[names(tf.type_spec_from_value(each)) for each in ("
    "whole, np.zeros([2]), sparse, slices, array, tf.data.Dataset.range(3), 3, 'a', tf.Variable(1.0))]",
    "type_spec_from_value.error": "tf.type_spec_from_value(object())",
}
MODULE = """
class Inner(tf.Module):
    def __init__(self):
        super().__init__()
        self.z = tf.Variable(1.0, name='z')
    def __call__(self, x):
        with self.name_scope:
            return tf.identity(x, name='in')
class HTTPModel(tf.Module):
    def __init__(self, name=None):
        super().__init__(name)
        self.w = tf.Variable(1.0, name='w')
        self.several = [tf.Variable(2, trainable=False, name='l')]
        self.inside = {'k': Inner(), 'a': (Inner(), self.w)}
    @tf.Module.with_name_scope
    def called(self, x):
        return tf.identity(x, name='out')
it = HTTPModel()
other = HTTPModel('named')
"""
MODULE_CALLS = {
    "name": "[it.name, other.name, tf.Module().name]",
    "name_scope": "[it.inside['k'](1).name, it.inside['a'][0](1).name, it.inside['k'](1).name]",
    "non_trainable_variables": "[each.name for each in it.non_trainable_variables]",
    "submodules": "[each.name for each in it.submodules]",
    "trainable_variables": "[each.name for each in it.trainable_variables]",
    "variables": "[each.name for each in it.variables]",
    "with_name_scope": "[it.called(1).name, it.called(1).name, other.called(1).name]",
    "error": "tf.Module('a b')",
}
PRINTED = """
import os, tempfile
x = tf.constant([[1.5, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.25]])
def printed(*values, **how):
    path = tempfile.mktemp()
    operation = tf.print(*values, output_stream='file://' + path, **how)
    run(operation)
    with open(path) as file:
        return [operation.name, operation.type, file.read()]
"""
PRINT = {
    "print": "[printed('a', tf.constant(1), x, 3, 4.5, 'b'), printed(tf.constant('text')),"
    " printed(tf.constant(['a', 'b']), 'x', sep='|', end='END'), printed(tf.range(10), summarize=-1),"
    " printed({'b': [tf.constant(2), 3], 'a': tf.constant(1)}, (x, 'q'), summarize=1), printed(),"
    " printed(True, None, tf.float32), printed(tf.range(10), summarize=2, name='nm'),"
    " printed('{}', tf.constant(1)), printed(['a', tf.constant('b')]),"
    " printed(tf.SparseTensor([[0]], [1], [3])), printed(tf.constant('b'), 'x', tf.constant('c'))]",
    "print.stream": "[tf.print('a', output_stream=each).get_attr('output_stream') for each in"
    " (__import__('sys').stdout, __import__('sys').stderr, tf.logging.info, tf.logging.WARN)]",
    "print.keyword": "tf.print('a', foo=1)",
    "print.unknown": "tf.print('a', output_stream='foo')",
}
SCOPES = """
made = []
def outside():
    with tf.init_scope():
        made.append(tf.constant(1, name='c'))
    return tf.constant(2)
with tf.control_dependencies([tf.no_op()]), tf.name_scope('s'):
    outside()
tf.cond(tf.placeholder_with_default(True, []), outside, lambda: tf.constant(3))
"""
SCOPE_CALLS = {
    "init_scope": "[[each.op.name, len(each.op.control_inputs), each.op._get_control_flow_context()]"
    " for each in made]",
}
DATA = """
data = tf.data.Dataset.range(4)
pairs = tf.data.Dataset.from_tensor_slices({'a': tf.zeros([2, 3]), 'b': tf.constant(['x', 'y'])})
options = tf.data.Options()
def set_to(name, value):
    setattr(options, name, value)
    return getattr(options, name)
def first(iterator):
    element = iterator.get_next()
    with tf.Session() as session:
        if iterator._initializer is not None:
            session.run(iterator.initializer)
        return [session.run(element) for _ in range(2)]
"""
DATA_CALLS = {
    "AUTOTUNE": "tf.data.AUTOTUNE",
    "DatasetSpec": "[repr(tf.data.DatasetSpec(tf.TensorSpec([2]))),"
    " repr(tf.data.DatasetSpec.from_value(data)),"
    " repr(tf.data.DatasetSpec.from_value(data).element_spec),"
    " tf.data.DatasetSpec.from_value(data) == tf.type_spec_from_value(tf.data.Dataset.range(9))]",
    "INFINITE_CARDINALITY": "tf.data.INFINITE_CARDINALITY",
    "Options": "[options.deterministic, set_to('deterministic', False), options.experimental_deterministic,"
    " tf.data.Options() == tf.data.Options(), options == tf.data.Options(),"
    " options.merge(tf.data.Options()).deterministic, first(tf.data.make_one_shot_iterator("
    "data.with_options(options))), data.with_options(options).options().deterministic]",
    "Options.unknown": "set_to('foo', 3)",
    "Options.type": "set_to('deterministic', 3)",
    "ThreadingOptions": "[tf.data.ThreadingOptions().max_intra_op_parallelism,"
    " options.threading.private_threadpool_size, setattr(options.threading, 'private_threadpool_size', 3),"
    " options.experimental_threading.private_threadpool_size]",
    "UNKNOWN_CARDINALITY": "tf.data.UNKNOWN_CARDINALITY",
    "get_output_classes": "tf.data.get_output_classes(pairs)",
    "get_output_shapes": "[tf.data.get_output_shapes(pairs), tf.data.get_output_shapes(data)]",
    "get_output_types": "tf.data.get_output_types(tf.data.make_one_shot_iterator(pairs))",
    "make_initializable_iterator": "first(tf.data.make_initializable_iterator(data))",
    "make_one_shot_iterator": "first(tf.data.make_one_shot_iterator(data))",
}
NAMESPACES = {
    "tf.dtypes": {"as_string": "tf.dtypes.as_string([1.5, 2.0], precision=2)"},
    "tf.graph_util": {"import_graph_def": "tf.graph_util.import_graph_def is tf.import_graph_def"},
    "tf.initializers": {
        "tables_initializer": "[tf.initializers.tables_initializer().name,"
        " tf.initializers.tables_initializer('t').type]"
    },
    "tf.queue": {
        name: f"tf.queue.{name} is tf.{name}"
        for name in ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue")
    },
    "tf.saved_model": {
        "DEBUG_DIRECTORY": "tf.saved_model.DEBUG_DIRECTORY",
        "DEBUG_INFO_FILENAME_PB": "tf.saved_model.DEBUG_INFO_FILENAME_PB",
        "contains_saved_model": "tf.saved_model.contains_saved_model('/no/such/folder')",
    },
    "tf.saved_model.constants": {
        "DEBUG_DIRECTORY": "tf.saved_model.constants.DEBUG_DIRECTORY",
        "DEBUG_INFO_FILENAME_PB": "tf.saved_model.constants.DEBUG_INFO_FILENAME_PB",
    },
    "tf.summary": {
        "all_v2_summary_ops": "tf.summary.all_v2_summary_ops()",
        "initialize": "tf.summary.initialize()",
    },
    "tf.test": {
        "benchmark_config": "str(tf.test.benchmark_config())",
        "is_cpu_target_available": "[type(tf.test.is_cpu_target_available('x86')).__name__]",
        "is_cpu_target_available.error": "tf.test.is_cpu_target_available('foo')",
        "with_eager_op_as_function": "[tf.test.with_eager_op_as_function(3),"
        " tf.test.with_eager_op_as_function(only_as_function=True)(4)]",
    },
    "tf.train": {
        "VocabInfo": "tf.train.VocabInfo('new', 3, 1, 'old')",
        "VocabInfo.error": "tf.train.VocabInfo('new', 3, 1, 'old', axis=2)",
    },
    "tf.config": {
        "LogicalDevice": "str(tf.config.LogicalDevice('a', 'CPU'))",
        "LogicalDeviceConfiguration": "[tf.config.LogicalDeviceConfiguration(memory_limit=3).memory_limit,"
        " tf.config.LogicalDeviceConfiguration().experimental_priority]",
        "PhysicalDevice": "str(tf.config.PhysicalDevice('a', 'CPU'))",
        "experimental_functions_run_eagerly": "tf.config.experimental_functions_run_eagerly()",
        "functions_run_eagerly": "tf.config.functions_run_eagerly()",
        "get_logical_device_configuration": "tf.config.get_logical_device_configuration("
        "tf.config.list_physical_devices('CPU')[0])",
        "get_soft_device_placement": "[tf.config.get_soft_device_placement(),"
        " tf.config.set_soft_device_placement(True), tf.config.get_soft_device_placement(),"
        " tf.config.set_soft_device_placement(False)]",
        "get_visible_devices": "str(tf.config.get_visible_devices('CPU'))",
        "list_logical_devices": "[str(tf.config.list_logical_devices('CPU')),"
        " tf.config.list_logical_devices('X')]",
        "list_physical_devices": "[str(tf.config.list_physical_devices('CPU')),"
        " tf.config.list_physical_devices('X')]",
        "set_visible_devices.error": "tf.config.set_visible_devices([3])",
        "optimizer.get_experimental_options": "tf.config.optimizer.get_experimental_options()",
        "optimizer.get_jit": "tf.config.optimizer.get_jit()",
        "optimizer.set_jit": "[tf.config.optimizer.set_jit(True), tf.config.optimizer.get_jit(),"
        " tf.config.optimizer.set_jit(False), tf.config.optimizer.get_jit()]",
        "optimizer.set_experimental_options": "[tf.config.optimizer.set_experimental_options("
        "{'remapping': False, 'nonsense': True}), tf.config.optimizer.get_experimental_options()]",
        **{
            f"threading.get_{which}_op_parallelism_threads": (
                f"tf.config.threading.get_{which}_op_parallelism_threads()"
            )
            for which in ("inter", "intra")
        },
    },
}
TABLES = [
    ClassCalls("tf", SPECS, OF_TF, ORACLE),
    ClassCalls("tf.Module", MODULE, MODULE_CALLS, ORACLE),
    ClassCalls("tf", PRINTED, PRINT, ORACLE),
    ClassCalls("tf", SCOPES, SCOPE_CALLS, ORACLE),
    ClassCalls("tf.data", DATA, DATA_CALLS, ORACLE),
    *(ClassCalls(name, "", calls, ORACLE) for name, calls in NAMESPACES.items()),
]
