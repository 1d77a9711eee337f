"""Members of the classes of `tf.gfile`, `tf.python_io`, `tf.summary`, `tf.saved_model` and `tf.test`."""

from class_calls import ClassCalls

FOLDER = """
import os, tempfile
folder = tempfile.mkdtemp()
def path(*parts):
    return os.path.join(folder, *parts)
"""
FILE = """
def wrote(name, text):
    with make(path(name), 'w') as file:
        file.write(text)
    return path(name)
lines = wrote('lines', 'one\\ntwo\\nthree')
def opened(mode='r'):
    return make(lines, mode)
def closed(file):
    file.read(1)
    file.close()
    return file.read(1)
def flushed():
    file = make(path('f'), 'w')
    file.write('abc')
    file.flush()
    found = open(path('f')).read()
    file.close()
    return found
"""
FILE_MEMBERS = {
    "__init__": "[make(lines, mode='rb').read(2), make(name=lines).name == lines]",
    "close": "closed(opened())",
    "flush": "flushed()",
    "mode": "[opened().mode, opened('rb').mode]",
    "name": "os.path.basename(opened().name)",
    "next": "[[f.next(), f.next()] for f in [opened()]]",
    "read": "[[f.read(2), f.read(), f.read()] for f in [opened()]]",
    "readline": "[[f.readline(), f.readline(), f.readline(), f.readline()] for f in [opened()]]",
    "readlines": "opened().readlines()",
    "seek": "[[f.seek(4), f.read(3), f.seek(offset=0), f.read(1)] for f in [opened()]]",
    "size": "opened().size()",
    "tell": "[[f.tell(), f.readline(), f.tell()] for f in [opened()]]",
    "write": "[wrote('w', 'new')[-1:], make(path('w')).read()]",
}
FILES = [
    ClassCalls(f"tf.gfile.{name}", FOLDER + f"make = tf.gfile.{name}\n" + FILE, FILE_MEMBERS)
    for name in ("FastGFile", "GFile", "Open")
]
OPTIONS = """
kinds = tf.python_io.TFRecordCompressionType
it = tf.python_io.TFRecordOptions(kinds.ZLIB)
"""
RECORDS = [
    ClassCalls(
        "tf.python_io.TFRecordCompressionType",
        OPTIONS,
        {"GZIP": "kinds.GZIP", "NONE": "kinds.NONE", "ZLIB": "kinds.ZLIB", "__init__": "kinds().GZIP"},
    ),
    ClassCalls(
        "tf.python_io.TFRecordOptions",
        OPTIONS,
        {
            "__init__": "it.compression_type",
            "compression_type_map": "sorted(it.compression_type_map.items())",
            "get_compression_type_string": (
                "[tf.python_io.TFRecordOptions.get_compression_type_string(each)"
                " for each in [it, None, tf.python_io.TFRecordOptions(kinds.GZIP)]]"
            ),
        },
    ),
    ClassCalls(
        "tf.python_io.TFRecordWriter",
        FOLDER
        + """
def records(name, end):
    it = tf.python_io.TFRecordWriter(path(name), None)
    it.write(b'one')
    end(it)
    found = list(tf.python_io.tf_record_iterator(path(name)))
    it.close()
    return found
""",
        {
            "__init__": "records('a', lambda it: it.close())",
            "close": "records('b', lambda it: it.close())",
            "flush": "records('c', lambda it: it.flush())",
            "write": "records('d', lambda it: [it.write(b'two'), it.close()])",
        },
    ),
]
WRITERS = (
    FOLDER
    + """
def events(name, work, *options):
    it = tf.summary.FileWriter(path(name), *options)
    work(it)
    it.close()
    found = []
    for file in sorted(os.listdir(path(name))):
        for event in tf.train.summary_iterator(path(name, file)):
            found.append([event.WhichOneof('what'), event.step])
    return found
value = tf.Summary(value=[tf.Summary.Value(tag='a', simple_value=2.5)])
def reopened(it):
    it.add_summary(value, 1)
    it.close()
    it.reopen()
    it.add_summary(value, 2)
def flushed():
    it = tf.summary.FileWriter(path('f'))
    it.add_summary(value, 3)
    it.flush()
    file, = os.listdir(path('f'))
    found = [e.step for e in tf.train.summary_iterator(path('f', file))]
    it.close()
    return found
def graph():
    with tf.Graph().as_default() as made:
        tf.constant(1)
    return made
"""
)
WRITER = {
    "__init__": (
        "[events('a', lambda it: None, graph(), 5, 30, None, '.end'),"
        " [f[-4:] for f in os.listdir(path('a'))]]"
    ),
    "add_event": "events('b', lambda it: it.add_event(tf.Event(step=7, summary=value)))",
    "add_graph": "events('c', lambda it: it.add_graph(graph(), 4))",
    "add_meta_graph": "events('d', lambda it: it.add_meta_graph(tf.MetaGraphDef(), 4))",
    "add_run_metadata": "events('e', lambda it: it.add_run_metadata(tf.RunMetadata(), 'step', 4))",
    "add_session_log": "events('g', lambda it: it.add_session_log(tf.SessionLog(status=1), 4))",
    "add_summary": (
        "events('h', lambda it: [it.add_summary(value, 4), it.add_summary(value.SerializeToString())])"
    ),
    "close": "events('i', lambda it: [it.add_summary(value, 2), it.close()])",
    "flush": "flushed()",
    "get_logdir": "[it.get_logdir() == path('j') for it in [tf.summary.FileWriter(path('j'))]]",
    "reopen": "[each[1] for each in events('k', reopened) if each[0] == 'summary']",
}
CACHE = {
    "__init__": "type(tf.summary.FileWriterCache()).__name__",
    "clear": (
        "[[tf.summary.FileWriterCache.clear(), tf.summary.FileWriterCache.get(path('l')) is one] for one in"
        " [tf.summary.FileWriterCache.get(path('l'))]]"
    ),
    "get": "[tf.summary.FileWriterCache.get(path('m')) is tf.summary.FileWriterCache.get(path('m'))]",
}
MODELS = (
    FOLDER
    + """
def started():
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session
def built(name, work):
    with tf.Graph().as_default():
        v = tf.Variable([1.0, 2.0], name='v')
        it = tf.saved_model.builder.SavedModelBuilder(path(name))
        it.add_meta_graph_and_variables(started(), ['a'], {'s': signature(v)}, None, None, False)
        work(it)
        it.save()
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ['a'], path(name))
        return [session.run('v:0'), list(meta.signature_def), list(meta.meta_info_def.tags)]
def signature(v):
    return tf.saved_model.signature_def_utils.predict_signature_def({'v': v}, {'v': v})
def loaded_with(tags, name):
    with tf.Graph().as_default(), tf.Session() as session:
        return list(tf.saved_model.loader.load(session, tags, path(name)).meta_info_def.tags)
def check(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__
"""
)
BUILDER = {
    "__init__": (
        "[built('a', lambda it: None), check(lambda: tf.saved_model.builder.SavedModelBuilder(path('a')))]"
    ),
    "add_meta_graph": "[built('b', lambda it: it.add_meta_graph(['b'], None)), loaded_with(['b'], 'b')]",
    "add_meta_graph_and_variables": (
        "check(lambda: tf.saved_model.builder.SavedModelBuilder(path('c')).add_meta_graph(['b']))"
    ),
    "save": "[built('d', lambda it: it.save(as_text=True)), sorted(os.listdir(path('d')))]",
}
STUBS = """
class Target(object):
    value = 3
def stubbed(*works):
    it, found = tf.test.StubOutForTesting(), []
    for work in works:
        work(it)
        found.append(Target.value)
    Target.value = 3
    return found
"""
SET = "lambda it: it.Set(Target, 'value', 4)"
SMART = "lambda it: it.SmartSet(Target, 'value', 5)"
STUB = {
    "CleanUp": f"stubbed({SET}, lambda it: it.CleanUp(), {SMART}, lambda it: it.CleanUp())",
    "Set": f"stubbed({SET})",
    "SmartSet": f"stubbed({SMART})",
    "SmartUnsetAll": f"stubbed({SMART}, lambda it: it.SmartUnsetAll())",
    "UnsetAll": f"stubbed({SET}, lambda it: it.UnsetAll())",
    "__init__": "stubbed(lambda it: None)",
}
BENCHMARKS = """
class Timed(tf.test.Benchmark):
    reports = []
    def report_benchmark(self, **what):
        self.reports.append(sorted(what))
class Quiet(tf.test.Benchmark):
    pass
def timed():
    with tf.Graph().as_default(), tf.Session() as session:
        one = tf.constant(1)
        found = Timed().run_op_benchmark(session, one, None, 1, 2, False, False, 'n', {'k': 1.0}, 2)
    return [sorted(each for each in found if each != 'name'), len(Timed.reports)]
"""
BENCHMARK = {
    "__init__": "isinstance(Quiet(), tf.test.Benchmark)",
    "is_abstract": "[tf.test.Benchmark.is_abstract(), Quiet.is_abstract()]",
    "report_benchmark": "Quiet().report_benchmark(3, 0.5, 0.25, 2.0, {'k': 1.0}, 'n')",
    "run_op_benchmark": "timed()",
}
CONSTANTS = [
    ClassCalls("tf.image.ResizeMethod", "", {"__init__": "tf.image.ResizeMethod().AREA"}),
    ClassCalls("tf.losses.Reduction", "", {"__init__": "tf.losses.Reduction().NONE"}),
]
TABLES = [
    *FILES,
    *RECORDS,
    *CONSTANTS,
    ClassCalls("tf.summary.FileWriter", WRITERS, WRITER),
    ClassCalls("tf.summary.FileWriterCache", FOLDER, CACHE),
    ClassCalls("tf.saved_model.builder.SavedModelBuilder", MODELS, BUILDER),
    ClassCalls("tf.test.StubOutForTesting", STUBS, STUB),
    ClassCalls("tf.test.Benchmark", BENCHMARKS, BENCHMARK),
]
