"""Calls of `tf.app`, `tf.compat`, `tf.graph_util`, `tf.logging` and `tf.test`."""

from class_calls import ClassCalls

TEXTS = {
    "as_bytes": (
        "[tf.compat.as_bytes(u'\\u00e9'), tf.compat.as_bytes(b'a'), len(tf.compat.as_bytes(u'\\u00e9',"
        " 'latin-1'))]"
    ),
    "as_str": "[tf.compat.as_str(b'a'), tf.compat.as_str('a', 'ascii')]",
    "as_str_any": "[tf.compat.as_str_any(b'a'), tf.compat.as_str_any(3.5)]",
    "as_text": (
        "[tf.compat.as_text(b'\\xc3\\xa9'), tf.compat.as_text(b'\\xe9', 'latin-1'), tf.compat.as_text('a')]"
    ),
    "bytes_or_text_types": "[isinstance(each, tf.compat.bytes_or_text_types) for each in [b'a', 'a', 1]]",
    "complex_types": (
        "[isinstance(each, tf.compat.complex_types) for each in [1j, np.complex64(1), 1.5, 'a']]"
    ),
    "integral_types": "[isinstance(each, tf.compat.integral_types) for each in [1, np.int8(1), 1.5, True]]",
    "real_types": "[isinstance(each, tf.compat.real_types) for each in [1, np.float32(1), 1.5, 1j]]",
}
APP = """
import sys
def left(call):
    try:
        return call()
    except SystemExit as error:
        return ['exit', error.code]
"""
RUNS = {
    "flags": "tf.app.flags is tf.flags",
    "run": (
        "[left(lambda: tf.app.run(lambda argv: sys.exit(len(argv)), ['program', 'a', 'b'])),"
        " left(lambda: tf.app.run(main=lambda argv: None, argv=['program']))]"
    ),
}
GRAPHS = """
graph = tf.Graph()
with graph.as_default():
    p = tf.placeholder(tf.float32, [2], name='p')
    v = tf.Variable([2.0, 3.0], name='v')
    same = tf.identity(v, name='same')
    out = tf.multiply(p, same, name='out')
    other = tf.constant(1, name='other')
    started = tf.Session()
    started.run(tf.global_variables_initializer())
whole = graph.as_graph_def()
def named(def_):
    return [[n.name, n.op] for n in def_.node]
def again(def_):
    with tf.Graph().as_default():
        result, = tf.import_graph_def(def_, return_elements=['out:0'], name='')
        with tf.Session() as session:
            return session.run(result, {'p:0': [10.0, 10.0]})
"""
GRAPH_UTIL = {
    "convert_variables_to_constants": (
        "[[again(d), named(d)] for d in [tf.graph_util.convert_variables_to_constants(started, whole,"
        " ['out'])]]"
        " + [named(tf.graph_util.convert_variables_to_constants(started, whole, ['out'], list(names),"
        " list(no)))"
        " for names, no in [(['v'], []), ([], ['v'])]]"
    ),
    "extract_sub_graph": "named(tf.graph_util.extract_sub_graph(whole, ['out']))",
    "must_run_on_cpu": (
        "[tf.graph_util.must_run_on_cpu(each, True) for each in [v.op, v.op.node_def, out.op, other.op]]"
        " + [tf.graph_util.must_run_on_cpu(each) for each in [v.op, other.op]]"
    ),
    "remove_training_nodes": (
        "[named(tf.graph_util.remove_training_nodes(tf.graph_util.extract_sub_graph(whole, ['out']), kept))"
        " for kept in [[], ['same']]]"
    ),
    "tensor_shape_from_node_def_name": "tf.graph_util.tensor_shape_from_node_def_name(graph, 'out')",
}
LOGS = """
import logging
class Kept(logging.Handler):
    def emit(self, record):
        lines.append([record.levelname, record.getMessage()])
lines = []
logger = logging.getLogger('tensorflow')
kept = Kept()
logger.addHandler(kept)
def logged(*calls):
    before = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.INFO)
    handlers, logger.handlers = logger.handlers, [kept]
    propagate, logger.propagate = logger.propagate, False
    del lines[:]
    for call in calls:
        call()
    logger.handlers = handlers
    logger.propagate = propagate
    tf.logging.set_verbosity(before)
    return list(lines)
def first(i):
    tf.logging.log_first_n(tf.logging.INFO, 'n %d', 2, i)
def verbosity(value):
    before = tf.logging.get_verbosity()
    tf.logging.set_verbosity(value)
    found = tf.logging.get_verbosity()
    tf.logging.set_verbosity(before)
    return found
"""
LOGGING = {
    **{name: f"tf.logging.{name}" for name in ("DEBUG", "ERROR", "FATAL", "INFO", "WARN")},
    **{
        name: f"logged(lambda: tf.logging.{name}('%s and %d', 'a', 3), lambda: tf.logging.{name}('plain'))"
        for name in ("debug", "error", "fatal", "info", "warn", "warning")
    },
    "TaskLevelStatusMessage": "logged(lambda: tf.logging.TaskLevelStatusMessage('done'))",
    "get_verbosity": "type(tf.logging.get_verbosity())",
    "log": (
        "logged(lambda: tf.logging.log(tf.logging.WARN, 'x %d', 3),"
        " lambda: tf.logging.log(tf.logging.DEBUG, 'y'))"
    ),
    "log_every_n": (
        "logged(*[lambda i=i: tf.logging.log_every_n(tf.logging.INFO, 'n %d', 3, i) for i in range(7)])"
    ),
    "log_if": (
        "logged(*[lambda i=i: tf.logging.log_if(tf.logging.INFO, 'n %d', i > 2, i) for i in range(5)])"
    ),
    "set_verbosity": "[verbosity(tf.logging.ERROR), verbosity(tf.logging.DEBUG)]",
    "vlog": "logged(lambda: tf.logging.vlog(tf.logging.INFO, 'v %d', 4), lambda: tf.logging.vlog(1, 'w'))",
}
EARLIER = {
    "log_first_n": "logged(*[lambda i=i: first(i) for i in range(7)])",
}
TESTS = """
import os
x = tf.constant([1.0, 2.0, 3.0])
y = x * x
start = np.array([1.0, 2.0, 3.0], np.float32)
def in_session(call):
    with tf.Session().as_default():
        return call()
def graph_def(value):
    with tf.Graph().as_default() as graph:
        tf.constant(value, name='c')
        return graph.as_graph_def()
class Case(tf.test.TestCase):
    def runTest(self):
        pass
    def runs(self):
        with self.test_session(graph=tf.Graph()) as session:
            self.assertAllClose(session.run(tf.constant([1.0]) * 2), [2.0])
            self.assertAllEqual([1, 2], np.array([1, 2]))
        return self.get_temp_dir() is not None
class Target(object):
    value = 3
def stubbed(stubs):
    stubs.Set(Target, 'value', 4)
    found = [Target.value]
    stubs.UnsetAll()
    stubs.SmartSet(Target, 'value', 5)
    found.append(Target.value)
    stubs.SmartUnsetAll()
    stubs.Set(Target, 'value', 6)
    stubs.CleanUp()
    return found + [Target.value]
"""
TEST = {
    "Benchmark": "[issubclass(tf.test.Benchmark, object), tf.test.Benchmark.is_abstract()]",
    "StubOutForTesting": "stubbed(tf.test.StubOutForTesting())",
    "TestCase": "Case().runs()",
    "assert_equal_graph_def": (
        "[tf.test.assert_equal_graph_def(graph_def(1), graph_def(each)) for each in [1]]"
    ),
    "compute_gradient": "in_session(lambda: list(tf.test.compute_gradient(x, [3], y, [3], start, 0.0625)))",
    "compute_gradient_error": (
        "in_session(lambda: bool(tf.test.compute_gradient_error(x, [3], y, [3], start, 0.0625) < 1e-3))"
    ),
    "get_temp_dir": (
        "[os.path.isdir(tf.test.get_temp_dir()), tf.test.get_temp_dir() == tf.test.get_temp_dir()]"
    ),
    "gpu_device_name": "type(tf.test.gpu_device_name())",
    "is_built_with_cuda": "type(tf.test.is_built_with_cuda())",
    "is_gpu_available": "[type(tf.test.is_gpu_available(True)), type(tf.test.is_gpu_available())]",
    "mock": "[m(3) for m in [tf.test.mock.Mock(return_value=5)]]",
}
RESOURCES = """
import os, tempfile
folder = tempfile.mkdtemp()
with open(os.path.join(folder, 'f'), 'wb') as file:
    file.write(b'text')
"""
RESOURCE_LOADER = {
    "get_data_files_path": "type(tf.resource_loader.get_data_files_path())",
    "get_path_to_datafile": (
        "os.path.basename(tf.resource_loader.get_path_to_datafile(os.path.join(folder, 'f')))"
    ),
    "get_root_dir_with_all_resources": "type(tf.resource_loader.get_root_dir_with_all_resources())",
    "load_resource": "tf.resource_loader.load_resource(os.path.join(folder, 'f'))",
    "readahead_file_path": "tf.resource_loader.readahead_file_path('f', '16M')",
}
SYSCONFIG = {
    "get_include": "type(tf.sysconfig.get_include())",
    "get_lib": "type(tf.sysconfig.get_lib())",
}
TABLES = [
    ClassCalls("tf.resource_loader", RESOURCES, RESOURCE_LOADER),
    ClassCalls("tf.sysconfig", "", SYSCONFIG),
    ClassCalls("tf.compat", "", TEXTS),
    ClassCalls("tf.app", APP, RUNS),
    ClassCalls("tf.graph_util", GRAPHS, GRAPH_UTIL),
    ClassCalls("tf.logging", LOGS, LOGGING),
    ClassCalls("tf.logging", LOGS, EARLIER, "1.4.1"),  # 1.15 finds another caller
    ClassCalls("tf.test", TESTS, TEST),
]
