"""Calls of `tf.saved_model`, `tf.summary`, `tf.gfile`, `tf.python_io`,"
" `tf.data` and messages of `tf.profiler`."""

from class_calls import ClassCalls

FOLDER = """
import os, tempfile
folder = tempfile.mkdtemp()
def path(*parts):
    return os.path.join(folder, *parts)
def alone(make):
    with tf.Graph().as_default():
        return make()
def started():
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    return session
"""
MODELS = (
    FOLDER
    + """
x = tf.placeholder(tf.float32, [None, 2], name='x')
y = tf.placeholder(tf.string, [3], name='y')
z = tf.placeholder(tf.string, name='z')
utils = tf.saved_model.signature_def_utils
info = tf.saved_model.utils.build_tensor_info
def signed(signature):
    parts = [signature.inputs, signature.outputs]
    return [[[k, p[k].name, p[k].dtype] for p in parts for k in sorted(p)], signature.method_name]
def save():
    with tf.Graph().as_default():
        v = tf.Variable([1.0, 2.0], name='v')
        builder = tf.saved_model.builder.SavedModelBuilder(path('m'))
        builder.add_meta_graph_and_variables(started(), ['a', 'b'])
        return builder.save()
saved = save()
def main_op():
    with tf.Graph().as_default():
        v = tf.Variable([1.0], name='v')
        w = tf.Variable([2.0], name='w', collections=['local_variables'])
        op = tf.saved_model.main_op.main_op()
        with tf.Session() as session:
            session.run(op)
            return [session.run([v, w]), op.name]
"""
)
CONSTANTS = {
    "constants": (
        "ASSETS_DIRECTORY ASSETS_KEY LEGACY_INIT_OP_KEY MAIN_OP_KEY SAVED_MODEL_FILENAME_PB"
        " SAVED_MODEL_FILENAME_PBTXT SAVED_MODEL_SCHEMA_VERSION VARIABLES_DIRECTORY VARIABLES_FILENAME"
    ),
    "signature_constants": (
        "CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES"
        " DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS REGRESS_INPUTS"
        " REGRESS_METHOD_NAME REGRESS_OUTPUTS"
    ),
    "tag_constants": "GPU SERVING TRAINING",
}
SIGNATURES = {
    "build_signature_def": "signed(utils.build_signature_def({'i': info(x)}, {'o': info(y)}, 'm'))",
    "classification_signature_def": "signed(utils.classification_signature_def(z, z, x))",
    "is_valid_signature": (
        "[utils.is_valid_signature(each) for each in [utils.predict_signature_def({'a': x}, {'b': y}),"
        " utils.build_signature_def({'i': info(x)}, None, 'm')]]"
    ),
    "predict_signature_def": "signed(utils.predict_signature_def({'a': x}, {'b': y, 'c': z}))",
    "regression_signature_def": "signed(utils.regression_signature_def(z, x))",
}
MODEL_UTILS = {
    "build_tensor_info": (
        "[[i.name, i.dtype, [d.size for d in i.tensor_shape.dim], i.tensor_shape.unknown_rank]"
        " for i in map(tf.saved_model.utils.build_tensor_info, [x, y, z])]"
    ),
    "get_tensor_from_tensor_info": (
        "[tf.saved_model.utils.get_tensor_from_tensor_info(info(x)) is x,"
        " alone(lambda: [[tf.import_graph_def(x.graph.as_graph_def(), name='i'),"
        " tf.saved_model.utils.get_tensor_from_tensor_info(info(x), tf.get_default_graph(), 'i').name]])]"
    ),
}
LOADER = {
    "load": (
        "alone(lambda: [[len(tf.saved_model.loader.load(s, ['a', 'b'], path('m')).graph_def.node) > 3,"
        " s.run('v:0')]"
        " for s in [tf.Session()]])"
    ),
    "maybe_saved_model_directory": (
        "[tf.saved_model.loader.maybe_saved_model_directory(each) for each in [path('m'), path('n')]]"
    ),
}
MAIN_OP = {
    "main_op": "main_op()",
    "main_op_with_restore": "alone(lambda: tf.saved_model.main_op.main_op_with_restore(tf.no_op('r')).name)",
}
BUILDER = {
    "SavedModelBuilder": "[saved == path('m', 'saved_model.pb').encode(), sorted(os.listdir(path('m')))]"
}
SPACES = {
    "builder": "tf.saved_model.builder.SavedModelBuilder.__name__",
    **{
        name: f"sum(each.isupper() for each in dir(tf.saved_model.{name}) if each[0] != '_') >= {least}"
        for name, least in {"constants": 9, "signature_constants": 11, "tag_constants": 3}.items()
    },
    "loader": "callable(tf.saved_model.loader.load)",
    "main_op": "callable(tf.saved_model.main_op.main_op)",
    "signature_def_utils": "callable(tf.saved_model.signature_def_utils.is_valid_signature)",
    "utils": "callable(tf.saved_model.utils.build_tensor_info)",
}
SUMMARIES = (
    FOLDER
    + """
def read(*summaries):
    found = tf.Summary.FromString(run(summaries[-1]))
    return [[v.tag, v.WhichOneof('value'), v.metadata.plugin_data.plugin_name] for v in found.value]
def described():
    node = tf.NodeDef(op='TensorSummary')
    node.attr['description'].s = b'{"typeHint": "h"}'
    return tf.summary.get_summary_description(node).type_hint
def written():
    writer = tf.summary.FileWriter(path('w'))
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag='a', simple_value=2.5)]), 4)
    writer.close()
    events = list(tf.train.summary_iterator(path('w', os.listdir(path('w'))[0])))
    return [events[0].file_version, events[1].step, events[1].summary.value[0].simple_value]
"""
)
SUMMARY = {
    "Event": "[e.WhichOneof('what') for e in [tf.summary.Event(step=3, file_version='v')]]",
    "FileWriter": "written()",
    "FileWriterCache": (
        "[tf.summary.FileWriterCache.get(path('c')) is tf.summary.FileWriterCache.get(path('c')),"
        " tf.summary.FileWriterCache.clear()]"
    ),
    "SessionLog": (
        "[tf.summary.SessionLog(status=tf.summary.SessionLog.START).status, tf.summary.SessionLog.STOP]"
    ),
    "Summary": (
        "tf.summary.Summary(value=[tf.summary.Summary.Value(tag='a',"
        " simple_value=1.5)]).value[0].simple_value"
    ),
    "SummaryDescription": "tf.summary.SummaryDescription(type_hint='h').type_hint",
    "TaggedRunMetadata": "tf.summary.TaggedRunMetadata(tag='a', run_metadata=b'x').run_metadata",
    "audio": "read(tf.summary.audio('a', [[0.5, -0.5]], 8000.0, 1, ['c'], 'f'))",
    "get_summary_description": "described()",
    "histogram": "read(tf.summary.histogram('a', [1.0, 2.0], ['c'], 'f'))",
    "image": "read(tf.summary.image('a', tf.zeros([2, 2, 2, 1]), 2, ['c'], 'f'))",
    "merge": "read(tf.summary.merge([tf.summary.scalar('a', 1.0), tf.summary.scalar('a', 2.0)], ['c'], 'm'))",
    "merge_all": (
        "[alone(lambda: read(tf.summary.scalar('a', 1.0), tf.summary.scalar('b', 1.0),"
        " tf.summary.merge_all())),"
        " alone(lambda: tf.summary.merge_all('none'))]"
    ),
    "scalar": "[read(tf.summary.scalar('a b', 1.0, ['c'], 'f')), tf.summary.scalar('s', 1.0).op.name]",
    "tensor_summary": "read(tf.summary.tensor_summary('t', [1.0], None, ['c'], None, 'f', 'shown'))",
    "text": "read(tf.summary.text('a', tf.constant(['b']), ['c']))",
}
PATHS = (
    FOLDER
    + """
def wrote(name, text):
    with tf.gfile.GFile(path(name), 'w') as file:
        file.write(text)
    return path(name)
def text_of(name):
    return tf.gfile.Open(path(name)).read()
wrote('a.txt', 'one')
wrote('b.txt', 'two')
tf.gfile.MakeDirs(path('d', 'e'))
wrote('d/c.txt', 'three')
def short(each):
    return each.replace(folder, 'F').replace('F/', '')
def check(call):
    try:
        return call()
    except tf.errors.OpError as error:
        return type(error).__name__
"""
)
GFILE = {
    "Copy": (
        "[tf.gfile.Copy(path('a.txt'), path('copy')), text_of('copy'),"
        " check(lambda: tf.gfile.Copy(path('b.txt'), path('copy'))), tf.gfile.Copy(path('b.txt'),"
        " path('copy'), True),"
        " text_of('copy')]"
    ),
    "DeleteRecursively": (
        "[tf.gfile.MakeDirs(path('x', 'y')), tf.gfile.DeleteRecursively(path('x')),"
        " os.path.exists(path('x'))]"
    ),
    "Exists": "[tf.gfile.Exists(path(each)) for each in ['a.txt', 'd', 'none']]",
    "FastGFile": (
        "[tf.gfile.FastGFile(path('a.txt')).read(), tf.gfile.FastGFile(path('a.txt'), 'rb').read(2)]"
    ),
    "GFile": "[f.size() for f in [tf.gfile.GFile(path('a.txt'))]]",
    "Glob": (
        "[sorted(map(short, tf.gfile.Glob(each))) for each in [path('*.txt'), [path('a*'), path('d/*')]]]"
    ),
    "IsDirectory": "[tf.gfile.IsDirectory(path(each)) for each in ['a.txt', 'd', 'none']]",
    "ListDirectory": (
        "[sorted(tf.gfile.ListDirectory(path('d'))), check(lambda: tf.gfile.ListDirectory(path('none')))]"
    ),
    "MakeDirs": (
        "[tf.gfile.MakeDirs(path('p', 'q')), tf.gfile.MakeDirs(path('p', 'q')), os.path.isdir(path('p',"
        " 'q'))]"
    ),
    "MkDir": (
        "[tf.gfile.MkDir(path('k')), os.path.isdir(path('k')), check(lambda: tf.gfile.MkDir(path('no',"
        " 'k')))]"
    ),
    "Open": "[line for line in tf.gfile.Open(path('b.txt'))]",
    "Remove": (
        "[wrote('gone', ''), tf.gfile.Remove(path('gone')), os.path.exists(path('gone')),"
        " check(lambda: tf.gfile.Remove(path('gone')))][1:]"
    ),
    "Rename": (
        "[wrote('old', 'o') and None, tf.gfile.Rename(path('old'), path('new')), text_of('new'),"
        " wrote('old', 'p') and check(lambda: tf.gfile.Rename(path('old'), path('new'))),"
        " tf.gfile.Rename(path('old'), path('new'), True), text_of('new')]"
    ),
    "Stat": "[[s.length, s.mtime_nsec > 1e18, s.is_directory] for s in [tf.gfile.Stat(path('a.txt'))]]",
    "Walk": (
        "[[[short(at), sorted(folders), sorted(files)] for at, folders, files in tf.gfile.Walk(path('d'),"
        " order)]"
        " for order in [True, False]]"
    ),
}
RECORDS = (
    FOLDER
    + """
gzip = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)
def wrote(name, options):
    with tf.python_io.TFRecordWriter(path(name), options) as writer:
        writer.write(b'one')
        writer.write(b'')
    return path(name)
def elements(dataset, count=5):
    it = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session:
        try:
            while True:
                found.append(session.run(it))
        except tf.errors.OutOfRangeError:
            return found
with open(path('t'), 'w') as file:
    file.write('first\\nsecond\\n')
"""
)
PYTHON_IO = {
    "TFRecordCompressionType": (
        "[tf.python_io.TFRecordCompressionType.NONE, tf.python_io.TFRecordCompressionType.ZLIB]"
    ),
    "TFRecordOptions": "tf.python_io.TFRecordOptions.get_compression_type_string(gzip)",
    "TFRecordWriter": "[os.path.getsize(wrote('r', None)), os.path.getsize(wrote('z', gzip)) > 9]",
    "tf_record_iterator": (
        "[list(tf.python_io.tf_record_iterator(wrote('s', None))),"
        " list(tf.python_io.tf_record_iterator(wrote('y', gzip), gzip))]"
    ),
}
DATA = {
    "Dataset": "elements(tf.data.Dataset.range(5).map(lambda x: x * 2).batch(2))",
    "FixedLengthRecordDataset": "elements(tf.data.FixedLengthRecordDataset(path('t'), 5, 1, 2, 16))",
    "Iterator": (
        "[[run(i.make_initializer(tf.data.Dataset.range(3)), i.get_next()), i.output_types,"
        " i.output_shapes] for i in"
        " [tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))]]"
    ),
    "TFRecordDataset": "elements(tf.data.TFRecordDataset([wrote('q', gzip)], 'GZIP', 64))",
    "TextLineDataset": "elements(tf.data.TextLineDataset([path('t')], None, 64))",
}
PROFILER = {
    "AdviceProto": "[tf.profiler.AdviceProto().ByteSize(), tf.profiler.AdviceProto.DESCRIPTOR.name]",
    "GraphNodeProto": (
        "[tf.profiler.GraphNodeProto(name='a', exec_micros=3).SerializeToString().decode('latin-1')]"
    ),
    "MultiGraphNodeProto": "tf.profiler.MultiGraphNodeProto(name='a', parameters=7).SerializeToString()",
    "OpLogProto": "[f.name for f in tf.profiler.OpLogProto.DESCRIPTOR.fields]",
}
TABLES = [
    ClassCalls("tf.saved_model", "", SPACES),
    *[
        ClassCalls(
            f"tf.saved_model.{space}", "", {name: f"tf.saved_model.{space}.{name}" for name in names.split()}
        )
        for space, names in CONSTANTS.items()
    ],
    ClassCalls("tf.saved_model.builder", MODELS, BUILDER),
    ClassCalls("tf.saved_model.loader", MODELS, LOADER),
    ClassCalls("tf.saved_model.main_op", MODELS, MAIN_OP),
    ClassCalls("tf.saved_model.signature_def_utils", MODELS, SIGNATURES),
    ClassCalls("tf.saved_model.utils", MODELS, MODEL_UTILS),
    ClassCalls("tf.summary", SUMMARIES, SUMMARY),
    ClassCalls("tf.gfile", PATHS, GFILE),
    ClassCalls("tf.python_io", RECORDS, PYTHON_IO),
    ClassCalls("tf.data", RECORDS, DATA),
    ClassCalls("tf.profiler", "", PROFILER),
]
