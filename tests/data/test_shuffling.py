"""The orders that seeds give are those of TensorFlow 1.15.5, from which the numbers below are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

D, E = tf.data.Dataset, tf.data.experimental


def apart(name: str) -> Any:
    """Options of which the optimisation `name` is off."""
    options = tf.data.Options()
    setattr(options.experimental_optimization, name, False)
    return options


def drawn(_: Any) -> Any:
    return tf.random_uniform([], 0, 1000, tf.int32, seed=3)


def twice(dataset: Any) -> Any:
    return dataset.concatenate(dataset)


ORDERS: dict[str, tuple[Callable[[], Any], list[int]]] = {
    "alone": (lambda: D.range(6).shuffle(6, seed=7), [4, 0, 2, 3, 5, 1]),
    "once": (lambda: D.range(6).shuffle(6, seed=7).repeat(1), [4, 0, 2, 3, 5, 1]),
    "a tensor as seed": (
        lambda: D.range(6).shuffle(6, seed=tf.constant(7, tf.int64)),
        [4, 0, 2, 3, 5, 1],
    ),
    "repeated": (lambda: D.range(6).shuffle(6, seed=7).repeat(2), [3, 0, 1, 4, 2, 5, 0, 5, 2, 4, 3, 1]),
    "without end": (
        lambda: D.range(6).shuffle(6, seed=7).repeat().take(13),
        [3, 0, 1, 4, 2, 5, 0, 5, 2, 4, 3, 1, 3],
    ),
    "twice repeated": (
        lambda: D.range(6).shuffle(6, seed=7).repeat(2).repeat(2),
        [3, 0, 1, 4, 2, 5, 0, 5, 2, 4, 3, 1] * 2,
    ),
    "something between": (
        lambda: D.range(6).shuffle(6, seed=7).map(lambda x: x).repeat(2),
        [4, 0, 2, 3, 5, 1, 1, 4, 3, 2, 0, 5],
    ),
    "the same order": (
        lambda: D.range(6).shuffle(6, seed=7, reshuffle_each_iteration=False).repeat(2),
        [3, 0, 1, 4, 2, 5] * 2,
    ),
    "apart by its options": (
        lambda: D.range(6).shuffle(4, seed=1).repeat(2).with_options(apart("shuffle_and_repeat_fusion")),
        [0, 4, 5, 2, 3, 1, 2, 1, 3, 5, 4, 0],
    ),
    "not optimized": (
        lambda: D.range(6).shuffle(4, seed=1).repeat(2).with_options(apart("apply_default_optimizations")),
        [0, 4, 5, 2, 3, 1, 2, 1, 3, 5, 4, 0],
    ),
    "few at a time": (
        lambda: D.range(7).shuffle(3, seed=7).repeat(3),
        [0, 2, 3, 4, 5, 6, 1, 0, 3, 1, 5, 2, 6, 4, 1, 0, 3, 4, 5, 2, 6],
    ),
    "fewer than at a time": (
        lambda: D.range(3).shuffle(10, seed=7).repeat(4),
        [0, 2, 1, 1, 0, 2, 0, 2, 1, 1, 0, 2],
    ),
    "with and without repetition": (
        lambda: D.range(6).shuffle(6, seed=7).concatenate(D.range(6).shuffle(6, seed=7).repeat(2)),
        [4, 0, 2, 3, 5, 1, 3, 0, 1, 4, 2, 5, 0, 5, 2, 4, 3, 1],
    ),
    "one operation": (
        lambda: D.range(6).apply(E.shuffle_and_repeat(4, 2, seed=3)),
        [3, 4, 2, 5, 0, 1, 0, 1, 3, 5, 4, 2],
    ),
    "one operation in a function": (
        lambda: D.range(2).flat_map(lambda i: D.range(4).apply(E.shuffle_and_repeat(4, 2, seed=2))),
        [3, 1, 2, 0, 1, 2, 3, 0] * 2,
    ),
    "numbers": (
        lambda: E.RandomDataset(5).take(4),
        [3568415791, 2798973839, 2476249224, 2816106479],
    ),
    "samples": (
        lambda: E.sample_from_datasets([D.range(15), D.range(15, 30)], [0.5, 0.5], seed=3).take(12),
        [15, 16, 17, 0, 18, 19, 1, 20, 2, 3, 21, 4],
    ),
    "samples of three": (
        lambda: E.sample_from_datasets(
            [D.range(9), D.range(9, 18), D.range(18, 27)], [0.2, 0.3, 0.5], seed=3
        ),
        [18, 19, 20, 9, 21, 22, 10, 23, 11, 0, 24, 1, 25, 26, 2, 12, 13, 3, 14, 4, 5, 15, 16, 6, 17, 7, 8],
    ),
    "drawn by a function": (
        lambda: D.range(3).map(drawn).repeat(2),
        [767, 225, 31, 990, 850, 132],
    ),
    "drawn by functions side by side": (
        lambda: twice(D.range(3).map(drawn)),
        [767, 225, 31, 767, 225, 31],
    ),
    "drawn in parts": (
        lambda: D.range(3).interleave(lambda i: D.range(2).map(drawn), 2).repeat(2),
        [767, 225, 31, 990, 850, 132, 145, 807, 997, 670, 234, 475],
    ),
    "drawn in parts of equal datasets": (
        lambda: twice(D.range(2).flat_map(lambda i: D.range(2).map(drawn))),
        [767, 225, 31, 990, 767, 225, 31, 990],
    ),
    "drawn by a filter": (
        lambda: D.range(9).filter(lambda i: drawn(i) > 500),
        [0, 3, 4, 7, 8],
    ),
    "drawn in batches": (
        lambda: D.range(4).apply(E.map_and_batch(drawn, 2, num_parallel_calls=1)).unbatch(),
        [767, 225, 31, 990],
    ),
    "drawn by a scan": (
        lambda: D.range(4).apply(E.scan(0, lambda s, i: (s + drawn(i), s))),
        [0, 767, 992, 1023],
    ),
    "drawn in windows": (
        lambda: D.range(6).apply(E.group_by_window(lambda i: i % 2, lambda k, w: w.map(drawn), 2)),
        [767, 225, 31, 990, 850, 132],
    ),
    "drawn while it holds": (
        lambda: D.range(9).apply(E.take_while(lambda i: drawn(i) < 900)),
        [0, 1, 2],
    ),
    "drawn by a reduction": (
        lambda: D.from_tensors(D.range(4).reduce(0, lambda s, i: s + drawn(i))),
        [2013],
    ),
    "kept where it was drawn": (
        lambda: D.range(2).flat_map(lambda i: D.range(2).map(drawn).cache().repeat(2)).repeat(2),
        [767, 225, 767, 225, 31, 990, 31, 990, 767, 225, 767, 225, 31, 990, 31, 990],
    ),
    "repeated repetitions": (
        lambda: D.range(4).shuffle(4, seed=7).map(lambda x: x).repeat(2).repeat(3),
        [0, 2, 1, 3, 1, 0, 3, 2, 0, 3, 1, 2, 2, 1, 0, 3, 2, 1, 3, 0, 1, 0, 3, 2],
    ),
    "repeated repetitions of a part": (
        lambda: (
            D.range(2).flat_map(lambda i: D.range(3).shuffle(4, seed=7).map(lambda x: x).repeat(2)).repeat(2)
        ),
        [1, 2, 0, 1, 0, 2, 1, 2, 0, 1, 0, 2, 1, 0, 2, 0, 2, 1, 1, 0, 2, 0, 2, 1],
    ),
}


def passes(dataset: Any, count: int = 1) -> list[list[int]]:
    iterator = tf.data.make_initializable_iterator(dataset)
    element, found = iterator.get_next(), []
    with tf.Session() as session:
        for _ in range(count):
            session.run(iterator.initializer)
            found.append([])
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    found[-1].append(int(session.run(element)))
    return found


@pytest.mark.parametrize("name", ORDERS)
def test_order_of_seeds(name: str) -> None:
    make, order = ORDERS[name]
    assert passes(make(), 2) == [order] * 2


def test_without_seeds_repetitions_differ() -> None:
    for dataset in (D.range(40).shuffle(40).repeat(2), D.range(40).apply(E.shuffle_and_repeat(40, 2))):
        (one,), (two,) = passes(dataset.repeat(2)), passes(dataset)
        parts = [one[i : i + 40] for i in range(0, 160, 40)] + [two[:40], two[40:]]
        assert all(sorted(part) == list(range(40)) for part in parts)
        assert len(set(map(tuple, parts))) == 6


@pytest.mark.parametrize("done", [0, 2, 5, 6, 9])
def test_a_repetition_goes_on_where_a_checkpoint_was_made(done: int, tmp_path: Any) -> None:
    iterator = tf.data.make_initializable_iterator(D.range(6).shuffle(4, seed=7).repeat(3))
    element, saver = iterator.get_next(), tf.train.Saver([E.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        session.run(iterator.initializer)
        for _ in range(done):
            session.run(element)
        path = saver.save(session, str(tmp_path / "at"))
        rest = [int(session.run(element)) for _ in range(18 - done)]
        session.run(iterator.initializer)
        saver.restore(session, path)
        assert [int(session.run(element)) for _ in range(18 - done)] == rest


def test_nothing_of_a_shuffle_is_no_repetition() -> None:
    """TensorFlow 1.15 joins the two, and what it joins them to knows no 0."""
    following = D.range(5).shuffle(3, seed=1).repeat(0).make_initializable_iterator()
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="count must be greater"),
    ):
        session.run(following.initializer)


@pytest.mark.parametrize(
    ("make", "seed2", "number"),
    [
        (lambda: D.range(6).apply(E.map_and_batch(lambda x: x, 2)), 11, 4942),
        (lambda: D.range(6).apply(E.map_and_batch(lambda x: x, 2, 3, True)), 11, 4942),
        (lambda: D.range(6).apply(E.parallel_interleave(lambda x: D.range(x), 2)), 13, 5488),
        (lambda: D.range(6).batch(2).unbatch(), 12, 2298),
    ],
    ids=["batches", "batches at once", "interleaved", "unbatched"],
)
def test_datasets_have_as_many_nodes(make: Callable[[], Any], seed2: int, number: int) -> None:
    """So what is drawn after them by the graph's seed is the same."""
    tf.set_random_seed(5)
    make()
    later = tf.random_uniform([], 0, 10000, tf.int32)
    with tf.Session() as session:
        assert (later.op.get_attr("seed2"), int(session.run(later))) == (seed2, number)


def test_samples_by_weights_and_the_seed_of_the_graph() -> None:
    tf.set_random_seed(5)
    samples = E.sample_from_datasets([D.range(6), D.range(6, 12)], [0.7, 0.3])
    assert passes(samples) == [[6, 0, 1, 2, 7, 3, 8, 4, 5, 9, 10, 11]]
    one = D.range(3)
    assert E.sample_from_datasets([one]) is one


def test_what_chance_seeds_differs_in_each_pass() -> None:
    numbers = D.range(8).map(lambda _: tf.random_uniform([], 0, 1 << 30, tf.int32))
    first, second = passes(numbers, 2)
    assert first != second
