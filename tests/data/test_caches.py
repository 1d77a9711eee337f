"""`Dataset.cache` in files: TensorFlow's files, whole or not there, for as many passes as one likes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.data.dataset import op_dataset
from flowstone.data.structure import Structure
from test_iterator import rest

GOLDENS = Path(__file__).parent.parent / "golden" / "data"
D = tf.data.Dataset


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    with tf.Graph().as_default():
        yield tmp_path


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def counted(many: int, counts: Any) -> Any:
    """Numbers of which each that is computed is counted."""
    return D.range(many).map(
        lambda x: tf.py_func(lambda n: next(counts) * 0 + n, [x], tf.int64, stateful=True)
    )


def test_second_pass_reads_the_files_of_the_first(folder: Path) -> None:
    counts = itertools.count()
    element = counted(3, counts).cache("kept").repeat(2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert rest(session, element) == [0, 1, 2, 0, 1, 2]
    assert next(counts) == 3
    assert files(folder) == ["kept.data-00000-of-00001", "kept.index"]
    with tf.Graph().as_default(), tf.Session() as session:  # another program
        assert rest(session, D.range(9).cache("kept").make_one_shot_iterator().get_next()) == [0, 1, 2]


def test_files_of_tensorflow_are_read() -> None:
    numbers = tf.constant([0.0] * 5), tf.constant([""] * 5), tf.constant([[0, 0]] * 5)
    element = D.from_tensor_slices(numbers).cache(str(GOLDENS / "cache")).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        found = rest(session, element)
    assert [(float(a), b, c.tolist()) for a, b, c in found] == [
        (1.0, b"a", [1, 2]), (2.0, b"", [3, 4]), (3.0, b"c\xff", [5, 6])]  # fmt: skip


def test_names_in_the_files_are_tensorflows(folder: Path) -> None:
    many = D.from_tensors(tuple(tf.constant(i) for i in range(11))).repeat(2).cache("kept")
    with tf.Session() as session:
        rest(session, many.make_one_shot_iterator().get_next())
    names = tf.train.NewCheckpointReader("kept").get_variable_to_shape_map()
    assert sorted(names) == sorted(f"      {item}_{i:2d}" for item in range(2) for i in range(11))


def test_pass_that_ends_early_leaves_nothing(folder: Path) -> None:
    iterator = D.range(3).cache("kept").make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(element)
        assert "kept_0.lockfile" in files(folder)
        session.run(iterator.initializer)
        assert files(folder) == []
        session.run(element)
    assert files(folder) == []


def test_two_passes_at_once(folder: Path) -> None:
    first, second = (D.range(2).cache("kept").make_one_shot_iterator().get_next() for _ in range(2))
    with tf.Session() as session:
        session.run(first)
        with pytest.raises(tf.errors.AlreadyExistsError, match="kept_0"):
            session.run(second)
        assert session.run(first) == 1
        assert rest(session, first) == []
        assert rest(session, second) == [0, 1]


def test_saved_pass_goes_on_in_another_shard(folder: Path) -> None:
    iterator = D.range(5).cache("kept").make_initializable_iterator()
    element, handle = iterator.get_next(), iterator._iterator_resource
    save, fed = tf.raw_ops.SerializeIterator(resource_handle=handle), tf.placeholder(tf.variant, [None])
    restore = tf.raw_ops.DeserializeIterator(resource_handle=handle, serialized=fed)
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert [session.run(element) for _ in range(2)] == [0, 1]
        state = session.run(save)
        assert session.run(element) == 2
        session.run(restore, {fed: state})
        assert session.run(element) == 2
        state = session.run(save)
        assert rest(session, element) == [3, 4]
        session.run(iterator.initializer)
        assert [session.run(element) for _ in range(3)] == [0, 1, 2]
        state = session.run(save)
        session.run(restore, {fed: state})
        assert rest(session, element) == [3, 4]
    assert not [name for name in files(folder) if name.startswith("kept_")]


def test_bad_caches(folder: Path) -> None:
    def first(dataset: Any) -> Any:
        with tf.Session() as session:
            return session.run(dataset.make_one_shot_iterator().get_next())

    for many in (0, 3):
        with pytest.raises(tf.errors.OutOfRangeError), tf.Session() as session:
            element = D.range(many).cache("none").make_one_shot_iterator().get_next()
            session.run(element)
    with tf.Session() as session:
        rest(session, D.range(2).cache("kept").make_one_shot_iterator().get_next())
    with pytest.raises(tf.errors.InvalidArgumentError, match="component 0 is int64, not float32"):
        first(D.from_tensors(1.0).cache("kept"))
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        first(D.range(2).cache("nowhere/kept"))
    data = folder / "kept.data-00000-of-00001"
    data.write_bytes(b"\xff" + data.read_bytes()[1:])
    with pytest.raises(tf.errors.DataLossError, match="kept"):
        first(D.range(2).cache("kept"))


def test_caches_and_seeds_as_resources() -> None:
    raw, numbers = tf.raw_ops, {"output_types": [tf.int64], "output_shapes": [[]]}

    def elements(make: Any) -> list[Any]:
        iterator = op_dataset("Raw", Structure.of(tf.int64, []), make).make_initializable_iterator()
        element = iterator.get_next()
        with tf.Session() as session:
            session.run(iterator.initializer)
            return rest(session, element)

    source = D.range(6)._as_variant_tensor

    def shuffled(seeds: Any, version: int = 3, **more: Any) -> Any:
        make = raw.ShuffleDatasetV3 if version == 3 else raw.ShuffleDatasetV2
        more = {**more, **numbers}

        def twice() -> Any:
            one = make(input_dataset=source(), buffer_size=6, seed_generator=seeds(), **more)
            return raw.RepeatDataset(input_dataset=one, count=2, **numbers)

        return twice

    for cache in (raw.DummyMemoryCache, lambda: raw.AnonymousMemoryCache().handle):
        made = elements(lambda cache=cache: raw.CacheDatasetV2(
            input_dataset=source(), filename="", cache=cache(), **numbers))  # fmt: skip
        assert made == [0, 1, 2, 3, 4, 5]
    own = elements(shuffled(raw.DummySeedGenerator, seed=1, seed2=2))
    random = lambda: raw.AnonymousRandomSeedGenerator(seed=1, seed2=2).handle  # noqa: E731
    given = elements(shuffled(random, version=2))
    assert own == given and own[:6] != own[6:] and sorted(own[:6]) == [0, 1, 2, 3, 4, 5]
    same = lambda: raw.AnonymousSeedGenerator(seed=1, seed2=2, reshuffle=False).handle  # noqa: E731
    again = elements(shuffled(same, seed=5, seed2=6))
    assert again[:6] == again[6:]


def test_deleting_a_resource_leaves_who_uses_it() -> None:
    raw = tf.raw_ops
    cache, seeds = raw.AnonymousMemoryCache(), raw.AnonymousSeedGenerator(seed=1, seed2=2, reshuffle=True)
    other = raw.AnonymousRandomSeedGenerator(seed=1, seed2=2)
    with tf.Session() as session:
        session.run([raw.DeleteMemoryCache(handle=cache.handle, deleter=cache.deleter),
                     raw.DeleteSeedGenerator(handle=seeds.handle, deleter=seeds.deleter),
                     raw.DeleteRandomSeedGenerator(handle=other.handle, deleter=other.deleter)])  # fmt: skip
