"""Dataset ops that no method makes: those of graphs that later versions of TensorFlow wrote."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.data.dataset import op_dataset
from flowstone.data.structure import Structure
from flowstone.framework import errors
from flowstone.framework.functions.function import Defun
from test_iterator import rest

pytestmark = pytest.mark.usefixtures("graph")

D, raw = tf.data.Dataset, tf.raw_ops
NUMBERS = {"output_types": [tf.int64], "output_shapes": [[]]}


def elements(make: Any, structure: Structure | None = None) -> list[Any]:
    dataset = op_dataset("Raw", structure or Structure.of(tf.int64, []), make)
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        return rest(session, element)


@pytest.mark.parametrize(
    "around",
    [
        lambda x: raw.LatencyStatsDataset(input_dataset=x, tag="t", **NUMBERS),
        lambda x: raw.ModelDataset(input_dataset=x, **NUMBERS),
        lambda x: raw.OptimizeDataset(input_dataset=x, optimizations=["noop"], **NUMBERS),
        lambda x: raw.OptionsDataset(input_dataset=x, serialized_options="", **NUMBERS),
    ],
)
def test_options_leave_the_elements(around: Any) -> None:
    assert elements(lambda: around(D.range(3)._as_variant_tensor())) == [0, 1, 2]


def test_windows_are_datasets() -> None:
    def make() -> Any:
        return raw.WindowDataset(
            input_dataset=D.range(7)._as_variant_tensor(), size=3, shift=2, stride=2, drop_remainder=True,
            output_types=[tf.variant], output_shapes=[[]],
        )  # fmt: skip

    windows = op_dataset("Raw", Structure.of(tf.variant, []), make)
    flat = windows.flat_map(
        lambda window: op_dataset("Raw", Structure.of(tf.int64, []), lambda: window).batch(9)
    )
    element = flat.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [x.tolist() for x in rest(session, element)] == [[0, 2, 4], [2, 4, 6]]


def test_elements_are_chosen_by_their_last_component() -> None:
    pairs = D.range(4).map(lambda x: (x, x % 2 > 0))
    assert elements(
        lambda: raw.FilterByLastComponentDataset(input_dataset=pairs._as_variant_tensor(), **NUMBERS)
    ) == [1, 3]


def test_random_numbers_are_those_of_the_seed() -> None:
    def some(seed: int) -> list[Any]:
        with tf.Graph().as_default():
            return elements(
                lambda: raw.TakeDataset(
                    input_dataset=raw.RandomDataset(seed=seed, seed2=7, **NUMBERS), count=3, **NUMBERS
                )
            )

    assert some(1) == some(1) != some(2) and all(0 <= number < 1 << 32 for number in some(1))


def test_optionals() -> None:
    iterator = D.range(1).make_one_shot_iterator()
    optional = raw.IteratorGetNextAsOptional(iterator=iterator._iterator_resource, **NUMBERS)
    has = raw.OptionalHasValue(optional=optional)
    value = raw.OptionalGetValue(optional=optional, **NUMBERS)[0]
    two = raw.OptionalFromValue(components=[5, 6])
    made = raw.OptionalGetValue(optional=two, output_types=[tf.int32] * 2, output_shapes=[[], []])
    none = raw.OptionalHasValue(optional=raw.OptionalNone())
    with tf.Session() as session:
        assert session.run([has, value]) == [True, 0]
        assert not session.run(has) and not session.run(none)
        assert session.run(made) == [5, 6]
        with pytest.raises(errors.InvalidArgumentError, match="does not have a value"):
            session.run(value)


def test_iterators_without_a_name() -> None:
    handle, deleter = raw.AnonymousIteratorV2(**NUMBERS)
    single = raw.AnonymousIterator(**NUMBERS)
    assert deleter.dtype is tf.variant
    dataset = D.range(5, 9)._as_variant_tensor()
    made = [raw.MakeIterator(dataset=dataset, iterator=each) for each in (handle, single)]
    with tf.control_dependencies(made):
        values = [raw.IteratorGetNextSync(iterator=each, **NUMBERS)[0] for each in (handle, single)]
    with tf.Session() as session:
        assert session.run(values) == [5, 5] == session.run(values)


def generated(until: int, ends: list[int]) -> Any:
    """A dataset of 0, 1 … by three functions of the graph; `ends` tells what the last was called with."""
    names = itertools.count()

    @Defun(tf.int64)
    def begin(start: Any) -> Any:
        return start

    def following(state: Any, step: Any) -> Any:
        number = next(names)
        if number == until:
            raise StopIteration
        return np.int64(state + number * step)

    @Defun(tf.int64, tf.int64)
    def more(state: Any, step: Any) -> Any:
        return tf.py_func(following, [state, step], tf.int64)

    @Defun(tf.int64)
    def end(state: Any) -> Any:
        return tf.py_func(lambda state: (ends.append(int(state)), np.int64(0))[1], [state], tf.int64)

    for each in (begin, more, end):
        each.add_to_graph(tf.get_default_graph())
    return raw.GeneratorDataset(
        init_func_other_args=[tf.constant(10, tf.int64)], next_func_other_args=[tf.constant(2, tf.int64)],
        finalize_func_other_args=[], init_func=begin, next_func=more, finalize_func=end, **NUMBERS,
    )  # fmt: skip


def test_generator_ends_with_out_of_range_and_is_finalized_once() -> None:
    ends: list[int] = []
    assert elements(lambda: generated(3, ends)) == [10, 12, 14]
    assert ends == [10]


def test_generator_of_a_pass_that_ends_early_is_finalized() -> None:
    ends: list[int] = []
    dataset = op_dataset("Raw", Structure.of(tf.int64, []), lambda: generated(9, ends))
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(element) == 10 and ends == []
        with pytest.raises(errors.UnimplementedError, match="generator"):
            session.run(raw.SerializeIterator(resource_handle=iterator._iterator_resource))
    assert ends == [10]


def test_batches_of_examples_are_parsed() -> None:
    def message(i: int) -> bytes:
        example = tf.train.Example()
        example.features.feature["x"].float_list.value.extend([i, i + 0.5])
        example.features.feature["a"].int64_list.value.extend(range(i))
        return example.SerializeToString()

    source = D.from_tensor_slices([message(i) for i in range(5)]).batch(2)
    none = tf.constant([], tf.float32)
    sparse = Structure.of((tf.int64, tf.float32), ([None, None], [None, 2]), (tf.SparseTensor, tf.Tensor))
    parsed = op_dataset("Raw", sparse, lambda: raw.ExperimentalParseExampleDataset(
        input_dataset=source._as_variant_tensor(), num_parallel_calls=2, dense_defaults=[none],
        sparse_keys=["a"], dense_keys=["x"], sparse_types=[tf.int64], dense_shapes=[[2]],
        **sparse.attributes))  # fmt: skip
    a, x = parsed.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        found = [session.run([tf.sparse_tensor_to_dense(a, -1), x]) for _ in range(3)]
    assert [dense.tolist() for dense, _ in found] == [[[-1], [0]], [[0, 1, -1], [0, 1, 2]], [[0, 1, 2, 3]]]
    assert [dense.tolist() for _, dense in found] == [
        [[0.0, 0.5], [1.0, 1.5]], [[2.0, 2.5], [3.0, 3.5]], [[4.0, 4.5]]]  # fmt: skip
