"""Calls of the functions of `tf` on graphs, sessions and types, of its constants and of its messages."""

from class_calls import ClassCalls

VALUES = """
x = tf.constant([1.0, 2.0], name='x')
def alone(make):
    with tf.Graph().as_default():
        return make()
def within(scope, make=lambda: tf.constant(1.0, name='inner')):
    with scope:
        made = make()
        return getattr(made, 'op', made)
class Pair:
    def __init__(self, parts):
        self.parts = parts
def converted():
    tf.register_tensor_conversion_function(
        Pair, lambda value, dtype=None, name=None, as_ref=False: tf.stack(value.parts), 50)
    return tf.add(Pair([1, 2]), 1)
def imported():
    with tf.Graph().as_default() as other:
        tf.square(tf.placeholder(tf.float32, name='p'), name='q')
    return tf.import_graph_def(other.as_graph_def(), {'p': x}, ['q:0', 'q'], 'import_here')
def fails(call):
    try:
        return call()
    except Exception as error:
        return type(error)
def handled():
    with tf.Session() as session:
        handle = session.run(tf.get_session_handle(tf.constant([4, 5]), 'h'))
        place, value = tf.get_session_tensor(handle.handle, tf.int32, 'g')
        found = session.run(value, {place: handle.handle})
        held, deletion = tf.delete_session_tensor(handle.handle, 'd')
        session.run(deletion, {held: handle.handle})
        return [found, fails(lambda: session.run(value, {place: handle.handle}))]
def restarted():
    graph = tf.Graph()
    before = tf.get_default_graph()
    return [before is tf.get_default_graph(), fails(tf.reset_default_graph)]
"""
GRAPHS = {
    "add_to_collection": "[tf.add_to_collection('here', 3), tf.get_collection('here')][1]",
    "colocate_with": (
        "[within(tf.colocate_with(x.op)).colocation_groups(), within(tf.colocate_with(x, True)).name]"
    ),
    "container": (
        "within(tf.container('box'), lambda: tf.FIFOQueue(1, tf.int32).queue_ref).get_attr('container')"
    ),
    "device": "[within(tf.device('/cpu:0')).device, within(tf.device(lambda op: '/device:CPU:0')).device]",
    "get_collection": (
        "[tf.add_to_collection('mine', x), len(tf.get_collection('mine', 'x')),"
        " tf.get_collection('mine', 'y')][1:]"
    ),
    "get_collection_ref": "[tf.get_collection_ref('new').append(5), tf.get_collection('new')][1]",
    "get_default_graph": (
        "[tf.get_default_graph() is x.graph, alone(lambda: tf.get_default_graph() is x.graph)]"
    ),
    "get_default_session": (
        "[tf.get_default_session(), within(tf.Session(), lambda: type(tf.get_default_session()))]"
    ),
    "get_session_handle": "alone(handled)",
    "get_session_tensor": "alone(handled)[0]",
    "delete_session_tensor": "alone(handled)[1]",
    "import_graph_def": "[[out, op.name, op.inputs[0].name] for out, op in [imported()]]",
    "name_scope": (
        "[within(tf.name_scope('s', 'd', [x])).name, within(tf.name_scope(None, 'd')).name,"
        " within(tf.name_scope('s')).name]"
    ),
    "op_scope": "[within(tf.op_scope([x], None, 'old')).name, within(tf.op_scope([x], 'mine', 'old')).name]",
    "register_tensor_conversion_function": "converted()",
    "reset_default_graph": "restarted()",
    "load_file_system_library": "fails(lambda: tf.load_file_system_library('/no/such/library.so'))",
    "load_op_library": "fails(lambda: tf.load_op_library('/no/such/library.so'))",
    "Session": "alone(lambda: within(tf.Session('', None, None), lambda: (tf.constant(3) + 4).eval()))",
    "InteractiveSession": (
        "alone(lambda: [[s.run(tf.constant(2) * 3), s.close()][0] for s in [tf.InteractiveSession()]])"
    ),
    "OpError": "[[e.message, e.error_code, e.op, e.node_def] for e in [tf.OpError(None, None, 'said', 3)]]",
}
CONSTANTS = {
    "COMPILER_VERSION": "type(tf.COMPILER_VERSION)",
    "GIT_VERSION": "type(tf.GIT_VERSION).__name__ in ('str', 'bytes')",
    "GRAPH_DEF_VERSION": "tf.GRAPH_DEF_VERSION >= 24",
    "GRAPH_DEF_VERSION_MIN_CONSUMER": "tf.GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER": "tf.GRAPH_DEF_VERSION_MIN_PRODUCER",
    "QUANTIZED_DTYPES": "sorted(each.name for each in tf.QUANTIZED_DTYPES)",
    "VERSION": "tf.VERSION == tf.__version__",
    "as_dtype": (
        "[tf.as_dtype(each).name for each in ['float32', np.int16, 3, tf.float64, np.dtype('bool'),"
        " 101, 'int32_ref']]"
    ),
}
TYPE_NAMES = """
bfloat16 bool complex128 complex64 double float16 float32 float64 half int16 int32 int64 int8
qint16 qint32 qint8 quint16 quint8 resource string uint16 uint32 uint64 uint8 variant
"""
DTYPES = {
    name: f"[tf.{name}, tf.{name}.as_datatype_enum, tf.{name}.size, tf.{name} is tf.as_dtype(tf.{name}.name)]"
    for name in TYPE_NAMES.split()
}
MESSAGES = {
    "AttrValue": "[list(tf.AttrValue(s=b'x').SerializeToString()), tf.AttrValue(i=5).WhichOneof('value')]",
    "ConfigProto": "list(tf.ConfigProto(intra_op_parallelism_threads=3).SerializeToString())",
    "Event": "list(tf.Event(step=7, file_version='v').SerializeToString())",
    "GPUOptions": "list(tf.GPUOptions(allow_growth=True).SerializeToString())",
    "GraphDef": (
        "[each.name for each in tf.GraphDef.FromString(x.graph.as_graph_def().SerializeToString()).node[:1]]"
    ),
    "GraphOptions": "list(tf.GraphOptions(place_pruned_graph=True).SerializeToString())",
    "HistogramProto": "list(tf.HistogramProto(min=1.0, bucket=[2.0]).SerializeToString())",
    "LogMessage": "list(tf.LogMessage(level=tf.LogMessage.WARN, message='m').SerializeToString())",
    "MetaGraphDef": "list(tf.MetaGraphDef(graph_def=tf.GraphDef(version=3)).SerializeToString())",
    "NameAttrList": "list(tf.NameAttrList(name='f', attr={'a': tf.AttrValue(i=1)}).SerializeToString())",
    "NodeDef": "list(tf.NodeDef(name='n', op='Add', input=['a', '^b'], device='d').SerializeToString())",
    "OptimizerOptions": "list(tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0).SerializeToString())",
    "RunMetadata": "list(tf.RunMetadata(partition_graphs=[tf.GraphDef(version=3)]).SerializeToString())",
    "RunOptions": (
        "list(tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=9).SerializeToString())"
    ),
    "SessionLog": "list(tf.SessionLog(status=tf.SessionLog.STOP, msg='m').SerializeToString())",
    "Summary": "list(tf.Summary(value=[tf.Summary.Value(tag='t', simple_value=2.0)]).SerializeToString())",
    "SummaryMetadata": "list(tf.SummaryMetadata(display_name='d').SerializeToString())",
    "TensorInfo": "list(tf.TensorInfo(name='x:0', dtype=1).SerializeToString())",
}
TABLES = [ClassCalls("tf", VALUES, {**GRAPHS, **CONSTANTS, **DTYPES, **MESSAGES})]
