"""Members of the classes of `tf.data`."""

from class_calls import ClassCalls

VALUES = """
import os, tempfile
folder = tempfile.mkdtemp()
def path(name):
    return os.path.join(folder, name)
with open(path('lines'), 'w') as file:
    file.write('one\\ntwo\\nsix')
with tf.python_io.TFRecordWriter(path('records')) as writer:
    for each in [b'one', b'two', b'six']:
        writer.write(each)
with open(path('fixed'), 'w') as file:
    file.write('onetwosix')
def listed(value):
    if isinstance(value, (tuple, list)):
        return [listed(each) for each in value]
    return value.decode().replace(folder, 'F') if isinstance(value, bytes) else value.tolist()
def elements(dataset):
    following = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session:
        try:
            while True:
                found.append(listed(session.run(following)))
        except tf.errors.OutOfRangeError:
            return found
def again(iterator):
    return run(iterator.initializer, iterator.get_next())
"""
KINDS = {
    "Dataset": (
        "tf.data.Dataset.from_tensor_slices(['one', 'two', 'six'])",
        "Dataset.range(3).__class__.__name__ != ''",
    ),
    "FixedLengthRecordDataset": (
        "tf.data.FixedLengthRecordDataset(path('fixed'), 3)",
        "elements(tf.data.FixedLengthRecordDataset([path('fixed')], 2, 1, 2, 64))",
    ),
    "TFRecordDataset": (
        "tf.data.TFRecordDataset(path('records'))",
        "elements(tf.data.TFRecordDataset([path('records')], None, 64))",
    ),
    "TextLineDataset": (
        "tf.data.TextLineDataset(path('lines'))",
        "elements(tf.data.TextLineDataset([path('lines')], '', 64))",
    ),
}
MEMBERS = {
    "apply": "elements(it.apply(lambda dataset: dataset.take(1)))",
    "batch": "elements(it.batch(2))",
    "cache": "[elements(it.cache()), elements(it.cache(path('cache')))]",
    "concatenate": "elements(it.concatenate(it.take(1)))",
    "filter": "elements(it.filter(lambda x: tf.equal(tf.substr(x, 0, 1), 't')))",
    "flat_map": "elements(it.flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(2)))",
    "from_generator": (
        "[elements(Dataset.from_generator(lambda: iter([1, 2]), tf.int64)),"
        " elements(Dataset.from_generator(lambda: iter([[1], [2]]), tf.int64, tf.TensorShape([1])))]"
    ),
    "from_sparse_tensor_slices": (
        "elements(Dataset.from_sparse_tensor_slices(tf.SparseTensor([[0, 1], [1, 0]], [5, 6], [2, 2])))"
    ),
    "from_tensor_slices": "elements(Dataset.from_tensor_slices(([1, 2], [[3], [4]])))",
    "from_tensors": "elements(Dataset.from_tensors({'a': [1, 2]}['a']))",
    "interleave": "elements(it.interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), 2, 1))",
    "list_files": "elements(Dataset.list_files(path('li*')))",
    "make_initializable_iterator": (
        "[again(it.make_initializable_iterator()), again(it.make_initializable_iterator('s'))]"
    ),
    "make_one_shot_iterator": "run(it.make_one_shot_iterator().get_next())",
    "map": "[elements(it.map(lambda x: x + '!')), elements(it.map(lambda x: (x, 1), 2))]",
    "output_shapes": "[it.output_shapes, it.batch(2).output_shapes]",
    "output_types": "[it.output_types, it.map(lambda x: (x, 1)).output_types]",
    "padded_batch": (
        "elements(it.map(lambda x: tf.string_split([x], '').values[:2]).padded_batch(2, [4], '-'))"
    ),
    "prefetch": "elements(it.prefetch(2))",
    "range": "[elements(Dataset.range(2)), elements(Dataset.range(1, 6, 2))]",
    "repeat": "[elements(it.repeat(2)), elements(it.repeat().take(4))]",
    "shard": "elements(it.shard(2, 1))",
    "shuffle": (
        "[sorted(elements(it.shuffle(3, 1))), elements(it.shuffle(1, seed=2,"
        " reshuffle_each_iteration=False))]"
    ),
    "skip": "elements(it.skip(2))",
    "take": "[elements(it.take(2)), elements(it.take(-1))]",
    "zip": "elements(Dataset.zip((it, Dataset.range(2))))",
}
ITERATORS = (
    VALUES
    + """
three = tf.data.Dataset.range(3)
it = tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
def from_handle():
    source = three.make_one_shot_iterator()
    handle = tf.placeholder(tf.string, [])
    other = tf.data.Iterator.from_string_handle(handle, tf.int64, tf.TensorShape([]))
    following = other.get_next()
    with tf.Session() as session:
        text = session.run(source.string_handle('h'))
        return [session.run(following, {handle: text}), session.run(following, {handle: text})]
"""
)
ITERATOR = {
    "__init__": "isinstance(it, tf.data.Iterator)",
    "from_string_handle": "from_handle()",
    "from_structure": (
        "[i.output_types for i in [tf.data.Iterator.from_structure((tf.int32, tf.string), None, 's')]]"
    ),
    "get_next": "run(it.make_initializer(three), it.get_next('next'))",
    "initializer": "again(three.make_initializable_iterator())",
    "make_initializer": "run(it.make_initializer(three.skip(1), 'i'), it.get_next())",
    "output_shapes": "[it.output_shapes, three.batch(2).make_one_shot_iterator().output_shapes]",
    "output_types": "it.output_types",
    "string_handle": "[it.string_handle('h').dtype, it.string_handle().shape]",
}
TABLES = [
    *[
        ClassCalls(
            f"tf.data.{name}",
            VALUES + f"Dataset = tf.data.{name}\nit = {make}\n",
            {"__init__": first, **MEMBERS},
        )
        for name, (make, first) in KINDS.items()
    ],
    ClassCalls("tf.data.Iterator", ITERATORS, ITERATOR),
]
