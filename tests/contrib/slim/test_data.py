"""Readers, providers and decoders of examples; the answers of the item handlers are TensorFlow 1.15.5's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib import slim
from flowstone.contrib.slim import (
    data_decoder,
    data_provider,
    dataset,
    dataset_data_provider,
    parallel_reader,
    prefetch_queue,
)
from flowstone.contrib.slim import tfexample_decoder as decoder

IMAGE = (np.arange(60).reshape(4, 5, 3) * 4).astype(np.uint8)
VARIABLE = tf.VarLenFeature


def message(**features: Any) -> bytes:
    """The bytes of an Example; two underscores in a name are a slash."""
    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name.replace("__", "/")]
        kind = {bytes: feature.bytes_list, float: feature.float_list, int: feature.int64_list}[
            type(values[0])
        ]
        kind.value.extend(values)
    return bytes(example.SerializeToString())


def decoded(data: bytes, features: dict[str, Any], handlers: dict[str, Any]) -> dict[str, Any]:
    """The items of a message, by name."""
    decoder_of_all = decoder.TFExampleDecoder(features, handlers)
    items = decoder_of_all.decode(tf.constant(data))
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        return dict(zip(decoder_of_all.list_items(), session.run(items)))


def encoded(image: Any) -> bytes:
    with tf.Session() as session:
        return bytes(session.run(tf.image.encode_png(image)))


def records(folder: Path, count: int) -> list[str]:
    """Two files of records: images whose first pixel is the label."""
    paths = [str(folder / "a.records"), str(folder / "b.records")]
    for part, path in enumerate(paths):
        with tf.python_io.TFRecordWriter(path) as writer:
            for label in range(part, count, 2):
                image = np.full([2, 2, 1], label, np.uint8)
                writer.write(message(image__encoded=[image.tobytes()], image__format=[b"raw"], label=[label]))
    return paths


FEATURES = {
    "image/encoded": tf.FixedLenFeature((), tf.string),
    "image/format": tf.FixedLenFeature((), tf.string, default_value="jpeg"),
    "label": tf.FixedLenFeature([1], tf.int64),
}


def provider_of(folder: Path, **options: Any) -> Any:
    handlers = {
        "image": decoder.Image(shape=[2, 2, 1], channels=1),
        "label": decoder.Tensor("label", shape=[]),
    }
    data = dataset.Dataset(
        records(folder, 6), tf.TFRecordReader, decoder.TFExampleDecoder(FEATURES, handlers), 6,
        {"image": "small", "label": "its pixels"}, num_classes=6,
    )  # fmt: skip
    assert data.num_classes == 6
    return dataset_data_provider.DatasetDataProvider(data, **options)


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_example_comes_once(tmp_path: Path, shuffle: bool) -> None:
    provider = provider_of(tmp_path, num_readers=2, shuffle=shuffle, num_epochs=1, common_queue_min=2)
    assert provider.num_samples() == 6
    assert list(provider.list_items()) == ["image", "label", "record_key"]
    image, label, key = provider.get(["image", "label", "record_key"])
    assert image.shape.as_list() == [2, 2, 1]
    found = {}
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with slim.queues.QueueRunners(session), pytest.raises(tf.errors.OutOfRangeError):
            while True:
                pixels, number, name = session.run([image, label, key])
                assert (pixels == number).all()
                found[name] = int(number)
    assert sorted(found.values()) == list(range(6))


def test_an_item_may_not_be_the_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="record_key"):
        provider_of(tmp_path, record_key="label")


def test_one_reader_reads_in_order(tmp_path: Path) -> None:
    key, _ = parallel_reader.single_pass_read(records(tmp_path, 4), tf.TFRecordReader)
    assert key.op.name.startswith("single_pass_read/")
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with slim.queues.QueueRunners(session):
            keys = [session.run(key).decode().rpartition("/")[2] for _ in range(4)]
    assert [name.partition(".")[0] for name in keys] == ["a", "a", "b", "b"]


def test_several_records_at_once(tmp_path: Path) -> None:
    queue = tf.FIFOQueue(100, [tf.string, tf.string], [[], []])
    reader = parallel_reader.ParallelReader(tf.TFRecordReader, queue, num_readers=2)
    assert (reader.num_readers, reader.common_queue) == (2, queue)
    files = tf.train.string_input_producer(records(tmp_path, 6), num_epochs=1)
    keys, _ = reader.read_up_to(files, 4)
    produced, completed = reader.num_records_produced(), reader.num_work_units_completed()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        count = 0
        with slim.queues.QueueRunners(session), pytest.raises(tf.errors.OutOfRangeError):
            while True:
                count += len(session.run(keys))
        assert count == 6
        assert session.run([produced, completed]) == [6, 2]


def test_names_of_files(tmp_path: Path) -> None:
    paths = records(tmp_path, 2)
    assert sorted(parallel_reader.get_data_files(str(tmp_path / "*.records"))) == paths
    assert parallel_reader.get_data_files(paths) == paths
    with pytest.raises(ValueError, match="No data files found in"):
        parallel_reader.get_data_files(str(tmp_path / "none*"))
    key, value = parallel_reader.parallel_read(paths, tf.TFRecordReader, shuffle=False)
    assert (key.dtype, value.dtype) == (tf.string, tf.string)
    with pytest.raises(TypeError, match="must make readers"):
        parallel_reader.ParallelReader(lambda: 3, None)


def test_items_by_name() -> None:
    provider = data_provider.DataProvider({"a": 1, "b": 2}, 3)
    assert provider.get(["b", "a"]) == [2, 1]
    with pytest.raises(ValueError, match=r"Item \[c\] is invalid"):
        provider.get(["c"])
    with pytest.raises(TypeError, match="abstract"):
        data_decoder.DataDecoder()  # type: ignore[abstract]


@pytest.mark.parametrize("form", ["list", "dict", "one"])
def test_a_prefetch_queue_gives_what_it_got(form: str) -> None:
    a, b = tf.zeros([2]), tf.ones([3])
    tensors = {"list": [a, b], "dict": {"a": a, "b": b}, "one": [a]}[form]
    queue = prefetch_queue.prefetch_queue(tensors, capacity=4, num_threads=2, dynamic_pad=form == "dict")
    batch = queue.dequeue()
    with tf.Session() as session, slim.queues.QueueRunners(session):
        value = session.run(batch)
    expected = {"list": [[0, 0], [1, 1, 1]], "dict": {"a": [0, 0], "b": [1, 1, 1]}, "one": [0, 0]}[form]
    assert tf.contrib.framework.nest.map_structure(np.ndarray.tolist, value) == expected
    assert tf.get_collection(tf.GraphKeys.SUMMARIES)[0].op.name == "prefetch_queue/fraction_of_4_full"


def test_boxes() -> None:
    sides = {f"b/{side}": VARIABLE(tf.float32) for side in ("ymin", "xmin", "ymax", "xmax")}
    data = message(b__ymin=[0.1, 0.2], b__xmin=[0.3, 0.4], b__ymax=[0.5, 0.6], b__xmax=[0.7, 0.8])
    items = decoded(data, sides, {"boxes": decoder.BoundingBox(prefix="b/")})
    np.testing.assert_allclose(items["boxes"], [[0.1, 0.3, 0.5, 0.7], [0.2, 0.4, 0.6, 0.8]], rtol=1e-6)
    none = decoded(message(a=[1]), sides, {"boxes": decoder.BoundingBox(prefix="b/")})
    assert none["boxes"].shape == (0, 4)
    with pytest.raises(ValueError, match="expects 4 keys but got 1"):
        decoder.BoundingBox(["a"])


def test_tensors() -> None:
    features = {name: VARIABLE(tf.int64) for name in "ahw"} | {"s": tf.FixedLenFeature([2], tf.int64)}
    items = decoded(
        message(a=[1, 2, 3, 4, 5, 6], s=[3, 2], h=[3], w=[2]),
        features,
        {
            "flat": decoder.Tensor("a"),
            "shape": decoder.Tensor("a", shape=[2, 3]),
            "key": decoder.Tensor("a", shape_keys="s"),
            "keys": decoder.Tensor("a", shape_keys=["h", "w"]),
        },
    )
    assert items["flat"].tolist() == [1, 2, 3, 4, 5, 6]
    assert items["shape"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert items["key"].tolist() == items["keys"].tolist() == [[1, 2], [3, 4], [5, 6]]
    with pytest.raises(ValueError, match="Cannot specify both"):
        decoder.Tensor("a", shape_keys=["h"], shape=[1])


def test_sparse_tensors() -> None:
    features = {"i": VARIABLE(tf.int64), "v": VARIABLE(tf.float32), "s": VARIABLE(tf.int64)}
    items = decoded(
        message(i=[0, 2], v=[1.0, 2.0], s=[5]),
        features,
        {
            "sparse": decoder.SparseTensor("i", "v", shape_key="s"),
            "dense": decoder.SparseTensor("i", "v", shape=[4], densify=True),
            "filled": decoder.SparseTensor("i", "v", shape=[4], densify=True, default_value=7),
        },
    )
    assert items["sparse"].indices.tolist() == [[0], [2]]
    assert items["sparse"].dense_shape.tolist() == [5]
    assert items["dense"].tolist() == [1, 0, 2, 0]
    assert items["filled"].tolist() == [1, 7, 2, 7]
    assert decoder.SparseTensor(shape=[2]).keys == ["indices", "values"]


def test_items_of_tables_functions_and_backups() -> None:
    keys, values = tf.constant(["x", "y"]), tf.constant([4, 5], tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    features = {"t": VARIABLE(tf.string), "a": VARIABLE(tf.int64), "b": VARIABLE(tf.int64)}
    items = decoded(
        message(t=[b"y", b"x"], b=[3, 4]),
        features,
        {
            "looked_up": decoder.LookupTensor("t", table),
            "backup": decoder.BackupHandler(decoder.Tensor("a"), decoder.Tensor("b")),
            "first": decoder.BackupHandler(decoder.Tensor("b"), decoder.Tensor("a")),
            "made": decoder.ItemHandlerCallback("b", lambda b: tf.sparse_tensor_to_dense(b["b"]) * 2),
        },
    )
    assert {name: value.tolist() for name, value in items.items()} == {
        "looked_up": [5, 4], "backup": [3, 4], "first": [3, 4], "made": [6, 8],
    }  # fmt: skip
    with pytest.raises(ValueError, match="Backup handler is of type"):
        decoder.BackupHandler(decoder.Tensor("a"), 4)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="abstract"):
        decoder.ItemHandler("a")  # type: ignore[abstract]


IMAGE_FEATURES = {name: FEATURES[name] for name in ("image/encoded", "image/format")}


@pytest.mark.parametrize(
    ("image_format", "options", "shape"),
    [
        (b"png", {}, [None, None, 3]),
        (b"PNG", {"shape": [4, 5, 3]}, [4, 5, 3]),
        (b"foo", {"channels": 0}, [None, None, None]),
        (b"png", {"channels": 1}, [None, None, 1]),
        (b"png", {"dct_method": "INTEGER_ACCURATE"}, [None, None, 3]),
        (b"raw", {"shape": [4, 5, 3]}, [4, 5, 3]),
        (b"RAW", {"shape": [4, 5, 3]}, [4, 5, 3]),
    ],
)
def test_images(image_format: bytes, options: Any, shape: Any) -> None:
    data = IMAGE.tobytes() if image_format.lower() == b"raw" else encoded(IMAGE)
    handler = decoder.Image(**options)
    assert handler.keys == ["image/encoded", "image/format"]
    message_of_it = message(image__encoded=[data], image__format=[image_format])
    decoder_of_it = decoder.TFExampleDecoder(IMAGE_FEATURES, {"image": handler})
    (image,) = decoder_of_it.decode(tf.constant(message_of_it), ["image"])
    assert image.shape.as_list() == shape
    with tf.Session() as session:
        value = session.run(image)
    if options.get("channels") == 1:
        assert value.ravel()[:3].tolist() == [3, 15, 27]
    else:
        np.testing.assert_array_equal(value, IMAGE)


def test_jpeg_and_several_images() -> None:
    with tf.Session() as session:
        jpeg = session.run(tf.image.encode_jpeg(IMAGE))
        expected = session.run(tf.image.decode_jpeg(jpeg, dct_method="INTEGER_ACCURATE"))
    features = {**IMAGE_FEATURES, "image/encoded": VARIABLE(tf.string)}
    items = decoded(
        message(image__encoded=[jpeg, jpeg], image__format=[b"jpeg"]),
        features,
        {"images": decoder.Image(repeated=True, dct_method="INTEGER_ACCURATE")},
    )
    np.testing.assert_array_equal(items["images"], np.stack([expected, expected]))


def test_no_such_item() -> None:
    with pytest.raises(KeyError):
        decoder.TFExampleDecoder(IMAGE_FEATURES, {"image": decoder.Image()}).decode(tf.constant(""), ["none"])
