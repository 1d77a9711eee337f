"""Programs of the older feature columns, as functions of the module ``tf``, and calls that are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

INDICES = [[0, 0], [0, 1], [1, 0]]


class Columns:
    """One column of each kind, and a batch of features for them."""

    def __init__(self, tf: Any, folder: Path) -> None:
        layers = self.layers = tf.contrib.layers
        self.tf, path = tf, folder / "words.txt"
        path.write_text("a\nb\nc\n", encoding="utf-8")
        self.w = layers.sparse_column_with_hash_bucket("w", 10)
        self.v = layers.sparse_column_with_keys("v", ["a", "b", "c"])
        self.i = layers.sparse_column_with_integerized_feature("i", 5)
        self.f = layers.sparse_column_with_vocabulary_file("v", str(path), num_oov_buckets=1, vocab_size=3)
        self.x = layers.real_valued_column("x")
        self.y = layers.real_valued_column("y", dimension=2, normalizer=lambda t: t * 2.0)
        self.d = layers.sparse_column_with_hash_bucket("d", 7)
        self.buckets = layers.bucketized_column(layers.real_valued_column("y", dimension=2), [2.5, 4.5])
        self.bucket = layers.bucketized_column(self.x, [1.5, 2.5])
        self.cross = layers.crossed_column([self.w, self.v], 11)
        self.keyed = layers.crossed_column([self.w, self.bucket], 9, hash_key=77)
        self.nested = layers.crossed_column([self.cross, self.d], 13)
        self.weighted = layers.weighted_sparse_column(self.i, "wt")

    def embedding(self, column: Any, **options: Any) -> Any:
        return self.layers.embedding_column(column, 2, **options)

    def sparse(self, values: Any, rows: int = 3) -> Any:
        return self.tf.SparseTensor(INDICES, values, [rows, 2])

    def features(self) -> dict[str, Any]:
        constant = self.tf.constant
        return {
            "w": self.sparse(["a", "b", "zz"]),
            "v": self.sparse(["a", "b", "zz"]),
            "i": self.sparse(constant([1, 2, 3], self.tf.int64)),
            "wt": self.sparse([0.5, 1.0, 2.0]),
            "x": constant([[1.0], [2.0], [3.0]]),
            "y": constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            "d": constant([["a"], ["q"], ["b"]]),
        }


PROGRAMS: dict[str, Callable[[Columns], Any]] = {}


def program(function: Callable[[Columns], Any]) -> Callable[[Columns], Any]:
    """Adds the program to the table."""
    PROGRAMS[function.__name__] = function
    return function


def run(tf: Any, name: str, folder: Path) -> dict[str, Any]:
    """Variables, which are set to known numbers, and the values of what the program returns."""
    with tf.Graph().as_default() as graph:
        found = PROGRAMS[name](Columns(tf, folder))
        variables = tf.global_variables()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            for number, variable in enumerate(variables):
                sizes = variable.shape.as_list()
                steps = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
                session.run(tf.assign(variable, steps * np.float32(0.1) + np.float32(number)))
            values = [_value(session, each) for each in found]
        keys = ("trainable_variables", "model_variables", "mine", "table_initializer")
        collections = {key: sorted(each.name for each in graph.get_collection(key)) for key in keys}
    shapes = [[each.name, each.shape.as_list()] for each in variables]
    return {"variables": shapes, "collections": collections, "values": values}


def _value(session: Any, each: Any) -> Any:
    if isinstance(each, (str, int, list, dict)):
        return each
    if hasattr(each, "dense_shape"):
        return [_plain(part) for part in session.run(each)]
    return [each.name, _plain(session.run(each))]


def _plain(array: Any) -> Any:
    array = np.asarray(array)
    if array.dtype.kind in "SO":
        return [each.decode() for each in array.ravel()]
    return (array.astype(np.float64).round(4) if array.dtype.kind == "f" else array).tolist()


@program
def attributes(c: Columns) -> Any:
    columns = (c.w, c.v, c.i, c.x, c.buckets, c.cross, c.keyed, c.weighted)
    made = (c.embedding(c.w), c.layers.one_hot_column(c.v))
    named = [[each.name, str(each.config), each.key] for each in columns]
    scattered = c.layers.scattered_embedding_column("w", 20, 3, hash_key=1)
    shared = c.layers.shared_embedding_columns([c.w, c.layers.sparse_column_with_hash_bucket("z", 10)], 2)
    lengths = [each.length for each in (c.w, c.v, c.i, c.f, c.buckets, c.cross, c.weighted, *made)]
    keys = [each.key for each in (*made, scattered)]
    defaults = [
        c.layers.real_valued_column("x", dimension=2, default_value=3).default_value,
        c.layers.real_valued_column("x", dimension=2, default_value=[3, 4]).default_value,
    ]
    return [named, lengths, keys, [each.name for each in (*made, scattered, *shared)], str(defaults)]


@program
def inputs(c: Columns) -> Any:
    columns = [c.x, c.y, c.embedding(c.w), c.layers.one_hot_column(c.v), c.buckets]
    outputs: dict[Any, Any] = {}
    layer = c.layers.input_from_feature_columns(c.features(), columns, cols_to_outs=outputs)
    return [layer, sorted(each.name for each in outputs)]


@program
def inputs_of_crosses_and_weights(c: Columns) -> Any:
    one_hot = c.layers.one_hot_column
    columns = [
        c.embedding(c.cross),
        c.embedding(c.nested),
        c.embedding(c.weighted, combiner="sum"),
        one_hot(c.i),
        one_hot(c.weighted),
    ]
    return [c.layers.input_from_feature_columns(c.features(), columns, weight_collections=["mine"])]


@program
def inputs_in_a_scope(c: Columns) -> Any:
    columns = [c.embedding(c.f, max_norm=1.0), c.layers.one_hot_column(c.d), c.embedding(c.d)]
    return [c.layers.input_from_feature_columns(c.features(), columns, scope="s", trainable=False)]


@program
def inputs_of_scattered_embeddings(c: Columns) -> Any:
    columns = [c.layers.scattered_embedding_column("w", 20, 3, 1, combiner) for combiner in ("mean", "sum")]
    more = c.layers.scattered_embedding_column("v", 15, 2, 5, "sqrtn")
    return [c.layers.input_from_feature_columns(c.features(), [*columns, more])]


@program
def inputs_of_a_shared_table(c: Columns) -> Any:
    columns = [c.layers.sparse_column_with_integerized_feature(name, 5) for name in "ij"]
    features = {"i": c.features()["i"], "j": c.features()["i"]}
    return [c.layers.input_from_feature_columns(features, c.layers.shared_embedding_columns(columns, 2))]


@program
def inputs_of_other_shapes(c: Columns) -> Any:
    tf, wide = c.tf, c.layers.real_valued_column("x", dimension=4)
    layer = c.layers.input_from_feature_columns
    numbers = c.layers.sparse_column_with_keys("k", [3, 5], dtype=tf.int64)
    hashed = c.layers.sparse_column_with_hash_bucket("k", 5, dtype=tf.int64)
    integers = {"k": tf.constant([[3, 4], [5, -1]], tf.int64)}
    return [
        layer({"x": tf.constant([1.0, 2.0])}, [c.x]),
        layer({"x": tf.constant([[1], [2]])}, [c.x]),
        layer({"x": tf.ones([3, 2, 2])}, [wide]),
        layer(integers, [c.layers.one_hot_column(numbers), c.layers.one_hot_column(hashed)]),
    ]


@program
def inputs_of_steps(c: Columns) -> Any:
    tf = c.tf
    words = tf.SparseTensor([[0, 0, 0], [0, 1, 0], [1, 0, 0]], ["a", "b", "q"], [2, 3, 1])
    ids = tf.SparseTensor(words.indices, tf.constant([1, 2, 3], tf.int64), words.dense_shape)
    weights = tf.SparseTensor(words.indices, tf.constant([1.0, 2.0, 3.0]), words.dense_shape)
    numbers = tf.constant(np.arange(12, dtype=np.float32).reshape(2, 3, 2))
    columns = [
        c.layers.real_valued_column("m", dimension=2),
        c.embedding(c.w),
        c.embedding(c.weighted),
        c.layers.one_hot_column(c.i),
    ]
    features = {"m": numbers, "w": words, "i": ids, "wt": weights}
    return [c.layers.sequence_input_from_feature_columns(features, columns)]


@program
def weighted_sums(c: Columns) -> Any:
    columns = [c.x, c.y, c.w, c.v, c.i, c.buckets, c.cross, c.keyed, c.weighted]
    logits, variables, bias = c.layers.weighted_sum_from_feature_columns(
        c.features(), columns, num_outputs=2, weight_collections=["mine"]
    )
    return [logits, sorted([k.name, [each.name for each in v]] for k, v in variables.items()), bias.name]


@program
def weighted_sums_of_parts(c: Columns) -> Any:
    with c.tf.variable_scope("s", partitioner=c.tf.fixed_size_partitioner(2)):
        logits, variables, _ = c.layers.weighted_sum_from_feature_columns(
            c.features(), [c.w, c.bucket], num_outputs=1
        )
    return [logits, sorted([k.name, [each.name for each in v]] for k, v in variables.items())]


@program
def joint_sums(c: Columns) -> Any:
    logits, variables, bias = c.layers.joint_weighted_sum_from_feature_columns(
        c.features(), [c.w, c.v, c.i], num_outputs=2
    )
    return [logits, [each.name for each in variables], bias.name]


@program
def transformed(c: Columns) -> Any:
    found = c.layers.transform_features(c.features(), [c.w, c.v, c.x, c.bucket, c.cross, c.keyed, c.nested])
    return [found[column] for column in sorted(found, key=lambda column: column.key) if column is not c.x]


@program
def in_newer_layers(c: Columns) -> Any:
    tf = c.tf
    columns = [c.x, c.y, c.buckets, c.embedding(c.w), c.layers.one_hot_column(c.i)]
    spec = tf.feature_column.make_parse_example_spec([c.x, c.w, c.weighted, c.cross, c.embedding(c.v)])
    return [
        tf.feature_column.input_layer(c.features(), columns),
        tf.feature_column.linear_model(c.features(), [c.x, c.w, c.cross, c.weighted, c.bucket]),
        sorted([key, str(value)] for key, value in spec.items()),
    ]


@program
def specs(c: Columns) -> Any:
    columns = [c.x, c.y, c.w, c.v, c.i, c.buckets, c.weighted, c.embedding(c.cross)]
    spec = c.layers.create_feature_spec_for_parsing(columns)
    holders = c.layers.make_place_holder_tensors_for_base_features([c.x, c.y, c.w])
    shown = [str(holders["x"]), str(holders["y"]), holders["w"].values.name]
    return [sorted([key, str(value)] for key, value in spec.items()), shown]


@program
def parsed(c: Columns) -> Any:
    tf = c.tf
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.append(2.0)
    example.features.feature["wt"].float_list.value.append(2.0)
    example.features.feature["w"].bytes_list.value.append(b"a")
    example.features.feature["i"].int64_list.value.append(2)
    z = c.layers.real_valued_column("z", dimension=2, default_value=[1.0, 5.0])
    found = c.layers.parse_feature_columns_from_examples(
        [example.SerializeToString()], [c.x, c.w, z, c.weighted]
    )
    names = sorted(getattr(each, "name", each) for each in found)
    return [names, found[c.w], _only_value(tf, found[c.x]), _only_value(tf, found[z])]


@program
def parsed_sequences(c: Columns) -> Any:
    tf = c.tf
    example = tf.train.SequenceExample()
    example.context.feature["x"].float_list.value.append(2.0)
    for word, number in ((b"a", 1.0), (b"b", 3.0)):
        example.feature_lists.feature_list["w"].feature.add().bytes_list.value.append(word)
        example.feature_lists.feature_list["y"].feature.add().float_list.value.append(number)
    context, steps = c.layers.parse_feature_columns_from_sequence_examples(
        example.SerializeToString(), [c.x], [c.w, c.layers.real_valued_column("y")]
    )
    found = [_only_value(tf, context["x"]), _only_value(tf, steps["y"]), steps["w"]]
    return [sorted(context), sorted(steps), *found]


def _only_value(tf: Any, tensor: Any) -> Any:
    return tf.identity(tensor, name="value")


@program
def inferred(c: Columns) -> Any:
    tf, infer = c.tf, c.layers.infer_real_valued_columns
    tensors = {"a": tf.zeros([3, 2]), "b": tf.zeros([3], tf.int32)}
    return [str(infer(tensors)), str(infer(tf.zeros([3, 4, 5])))]


@program
def crossed_features(c: Columns) -> Any:
    cross = c.layers.feature_column.sparse_feature_cross_op.sparse_feature_cross
    tf = c.tf
    words, numbers = c.sparse(["x", "yy", "zz"]), c.sparse(tf.constant([3, -1, 7], tf.int64))
    dense = tf.constant([["p", "q"], ["r", "s"], ["t", "u"]])
    small = tf.constant([[1, 2], [3, 4], [5, 6]])
    return [
        cross([words, words]),
        cross([words, words], hashed_output=True),
        cross([words, numbers], hashed_output=True, num_buckets=1000),
        cross([numbers, numbers], hashed_output=True, hash_key=77),
        cross([dense, small], hashed_output=True, num_buckets=100),
        c.layers.feature_column.bucketization_op.bucketize(tf.constant([1.0, 2.0, 3.0]), [1.5, 2.0]),
    ]


def refused(tf: Any, folder: Path) -> dict[str, list[str]]:
    """The class and message of the error of each call that TensorFlow refuses."""
    found = {}
    for name in _calls(Columns(tf, folder)):
        with tf.Graph().as_default():
            try:
                _calls(Columns(tf, folder))[name]()
                found[name] = ["nothing", ""]
            except Exception as error:
                found[name] = [type(error).__name__, str(error)]
    return found


def _calls(c: Columns) -> dict[str, Callable[[], Any]]:
    tf, layers = c.tf, c.layers
    layer, total = layers.input_from_feature_columns, layers.weighted_sum_from_feature_columns
    joint, steps = layers.joint_weighted_sum_from_feature_columns, layers.sequence_input_from_feature_columns
    real, hashed = layers.real_valued_column, layers.sparse_column_with_hash_bucket
    return {
        "hash_size": lambda: hashed("w", 0),
        "hash_type": lambda: hashed("w", 5, dtype=tf.float32),
        "hash_none": lambda: hashed("w", None),
        "integers_size": lambda: layers.sparse_column_with_integerized_feature("i", 0),
        "integers_type": lambda: layers.sparse_column_with_integerized_feature("i", 5, dtype=tf.string),
        "keys_type": lambda: layers.sparse_column_with_keys("v", ["a"], dtype=tf.float32),
        "file_size": lambda: layers.sparse_column_with_vocabulary_file("v", "f"),
        "real_zero": lambda: real("x", dimension=0),
        "real_text": lambda: real("x", default_value="a"),
        "real_length": lambda: real("x", dimension=2, default_value=[1.0]),
        "real_type": lambda: real("x", dtype=tf.string),
        "real_default_type": lambda: real("x", dtype=tf.int32, default_value=1.5),
        "real_default_types": lambda: real("x", dimension=2, default_value=[1, "a"]),
        "bucket_source": lambda: layers.bucketized_column(c.w, [1]),
        "bucket_empty": lambda: layers.bucketized_column(c.x, []),
        "bucket_falling": lambda: layers.bucketized_column(c.x, [2, 1]),
        "bucket_number": lambda: layers.bucketized_column(c.x, 3),
        "cross_one": lambda: layers.crossed_column([c.w], 5),
        "cross_real": lambda: layers.crossed_column([c.w, c.x], 5),
        "cross_size": lambda: layers.crossed_column([c.w, c.v], 0),
        "cross_number": lambda: layers.crossed_column(3, 5),
        "embedding_initializer": lambda: layers.embedding_column(c.w, 2, initializer=3),
        "embedding_checkpoint": lambda: layers.embedding_column(c.w, 2, ckpt_to_load_from="q"),
        "shared_kinds": lambda: layers.shared_embedding_columns([c.w, c.v], 2),
        "shared_none": lambda: layers.shared_embedding_columns([], 2),
        "shared_number": lambda: layers.shared_embedding_columns(3, 2),
        "scattered_size": lambda: layers.scattered_embedding_column("w", 0, 2, 1),
        "scattered_dimension": lambda: layers.scattered_embedding_column("w", 10, 0, 1),
        "scattered_combiner": lambda: layers.scattered_embedding_column("w", 10, 2, 1, combiner="q"),
        "scattered_initializer": lambda: layers.scattered_embedding_column("w", 10, 2, 1, initializer=3),
        "weights_type": lambda: layers.weighted_sparse_column(c.i, "wt", dtype=tf.string),
        "check_twice": lambda: layers.check_feature_columns([c.x, c.x]),
        "spec_number": lambda: layers.create_feature_spec_for_parsing([3]),
        "input_sparse": lambda: layer(c.features(), [c.w]),
        "input_cross": lambda: layer(c.features(), [c.keyed]),
        "input_twice": lambda: layer(c.features(), [c.x, c.x]),
        "input_missing": lambda: layer({}, [c.x]),
        "sum_embedding": lambda: total(c.features(), [layers.one_hot_column(c.w)], num_outputs=1)[0].missing,
        "joint_real": lambda: joint(c.features(), [c.w, c.x], num_outputs=2),
        "joint_weighted": lambda: joint(c.features(), [c.weighted], num_outputs=2),
        "steps_bucket": lambda: steps(c.features(), [c.buckets]),
        "steps_sparse": lambda: steps(c.features(), [c.w]),
        "steps_cross": lambda: steps(c.features(), [c.embedding(c.cross)]),
        "steps_scattered": lambda: steps(c.features(), [layers.scattered_embedding_column("w", 20, 3, 1)]),
    }
