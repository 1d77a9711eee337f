"""Generators: the numbers are TensorFlow 2.21's for the same seeds (graph mode of its compat.v1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

pytestmark = pytest.mark.usefixtures("graph")

Generator, Algorithm = tf.random.Generator, tf.random.Algorithm


def run(*fetches: Any) -> Any:
    """What the fetches are in a new session, whose variables have been initialised; of one alone, it."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(list(fetches))
    return found[0] if len(found) == 1 else found


def seeded() -> Any:
    return Generator.from_seed(1234)


@pytest.mark.parametrize(
    ("seed", "alg", "state"),
    [
        (1234, 1, [1234, 0, 0]),
        (-1, "philox", [-1, -1, -1]),
        (2**40, "auto_select", [2**40, 0, 0]),
        (2**70 + 5, 3, [5, 64, 0]),
        ([1, 2], Algorithm.PHILOX, [0, 1, 2]),
        ([1, 2, 3], 1, [1, 2, 3]),
        ([[1, 2], [3, 4]], 1, [1, 2, 3]),
        (np.int64([5]), 1, [0, 0, 5]),
        (1.5, 1, [0, 0, 1]),
        (7, "threefry", [7, 0]),
        (7, Algorithm.THREEFRY, [7, 0]),
    ],
)
def test_states_of_seeds(seed: Any, alg: Any, state: Any) -> None:
    made = tf.random.create_rng_state(seed, alg)
    assert made.dtype == tf.int64
    with tf.Session() as session:
        assert session.run(made).tolist() == state


def test_values() -> None:
    for make, expected in (
        (
            lambda g: g.normal([2, 3]),
            [[0.9356609, 1.0854305, -0.93788373], [-0.5061547, 1.3169702, 0.7137579]],
        ),
        (lambda g: g.normal([2], dtype=tf.float64), [-0.11301516, -0.52617762]),
        (lambda g: g.normal([2], 10.0, 2.0), [11.871322, 12.170861]),
        (lambda g: g.truncated_normal([3]), [0.9356609, 1.0854305, -0.93788373]),
        (
            lambda g: g.uniform([2, 3], 1.0, 2.0),
            [[1.3581475, 1.1132276, 1.566709], [1.6712369, 1.3256506, 1.1709546]],
        ),
        (lambda g: g.uniform([2], dtype=tf.float16), [0.9443, 0.5605]),
        (lambda g: g.uniform([5], 0, 10, tf.int32), [9, 6, 4, 9, 7]),
        (lambda g: g.uniform([2], None, None, tf.int64), [472453817354278855, 4059409125917362668]),
        (lambda g: g.uniform_full_int([2], tf.uint32), [1680725959, 110001726]),
        (
            lambda g: g.uniform_full_int([3]),
            [472453817354278855, 4059409125917362668, 18380845769304944363],
        ),
        (lambda g: g.binomial([3], [10.0, 20.0, 30.0], [0.2, 0.3, 0.4]), [4, 2, 15]),
        (lambda g: g.binomial([2, 3], [10.0, 20.0, 30.0], [0.2, 0.3, 0.4]), [[4, 7, 11], [0, 5, 10]]),
        (lambda g: g.make_seeds(2), [[472453817354278855, 4059409125917362668], [0, 0]]),
    ):
        found = run(make(seeded()))
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-3 if found.dtype == np.float16 else 1e-6)
        else:
            assert found.tolist() == expected
    assert Generator.from_seed(5, "auto_select").normal([3]).shape.as_list() == [3]
    np.testing.assert_allclose(
        run(Generator.from_seed(5, "auto_select").normal([3])),
        [1.0278524, 0.27974114, -0.01347923],
        rtol=1e-6,
    )


def test_each_draw_goes_on_where_the_last_one_ended() -> None:
    generator = seeded()
    first = generator.normal([2])
    with tf.control_dependencies([first]):
        second = generator.uniform([2])
    with tf.control_dependencies([second]):
        before = generator.skip(3)
    with tf.control_dependencies([before]):
        after = generator.state.read_value()
    found = run(first, second, before, after)
    np.testing.assert_allclose(found[0], [0.9356609, 1.0854305], rtol=1e-6)
    np.testing.assert_allclose(found[1], [0.9549352, 0.8923297], rtol=1e-6)
    assert found[2].tolist() == [1234 + 4 * 256, 0, 0]
    assert found[3].tolist() == [3026, 0, 0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        one, other = session.run(first), session.run(first)
        assert (one != other).all()


def test_binomial_values_are_those_of_the_same_stateless_operation() -> None:
    state = [1234, 5, 99]
    generator = Generator.from_state(state, 1)
    first = generator.binomial([500, 2], tf.constant([4.0, 900.0], tf.float64), [0.1, 0.6], tf.int64)
    with tf.control_dependencies([first]):
        after = generator.state.read_value()
    values, held = run(first, after)
    assert held.tolist() == [1234 + 256 * 1000, 5, 99]
    np.testing.assert_allclose(values.mean(0), [0.4, 540], rtol=0.1)
    np.testing.assert_allclose(values.var(0), [0.36, 216], rtol=0.25)


def test_ways_to_make_one() -> None:
    for generator, state in (
        (Generator.from_state([1, 2, 3], 1), [1, 2, 3]),
        (Generator(state=[1, 2, 3], alg="philox"), [1, 2, 3]),
        (Generator.from_key_counter(7, [1, 2], 1), [1, 2, 7]),
        (Generator.from_key_counter(tf.constant(7, tf.uint64), [1, 2], Algorithm.AUTO_SELECT), [1, 2, 7]),
    ):
        assert run(generator.state).tolist() == state
        assert run(generator.key) == state[2]
    with tf.Session() as session:
        original = Generator.from_state([4, 5, 6], 3)
        session.run(original.state.initializer)
        copy = Generator(copy_from=original)
        session.run(copy.state.initializer)
        assert session.run(copy.state).tolist() == [4, 5, 6]
        assert (copy.algorithm, original.algorithm) == (3, 3)
    some = [Generator.from_non_deterministic_state().state for _ in range(2)]
    one, other = run(*some)
    assert one.tolist() != other.tolist()
    assert [Generator.from_seed(5, alg).algorithm for alg in (None, "philox", 3, 2)] == [1, 1, 3, 2]
    assert seeded().state.name == "random_generator_12/StateVar:0"
    assert not tf.trainable_variables()


def test_a_new_state() -> None:
    generator = seeded()
    for operation, state in (
        (generator.reset([5, 6, 7]), [5, 6, 7]),
        (generator.reset_from_seed(9), [9, 0, 0]),
        (generator.reset_from_key_counter(1, [2, 3]), [2, 3, 1]),
    ):
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(operation)
            assert session.run(generator.state).tolist() == state


def test_the_global_generator(graph: Any) -> None:
    generator = tf.random.get_global_generator()
    assert tf.random.get_global_generator() is generator
    assert run(generator.normal([2])).shape == (2,)
    tf.random.set_global_generator(seeded())
    assert tf.random.get_global_generator() is not generator
    np.testing.assert_allclose(
        run(tf.random.get_global_generator().normal([2])), [0.9356609, 1.0854305], rtol=1e-6
    )
    with tf.Graph().as_default():  # which has one of its own
        assert tf.random.get_global_generator().state.graph is not graph


def test_what_is_refused() -> None:
    for state in ([1, 2], [1, 2, 3, 4], [[1, 2, 3]]):
        with pytest.raises(ValueError, match=r"incompatible"):
            Generator.from_state(state, 1)
    for alg in ("x", 9, None, True + 4):
        with pytest.raises(ValueError, match="unsupported value"):
            tf.random.create_rng_state(7, alg)
    for keywords in ({}, {"state": [1, 2, 3]}, {"alg": 1}, {"copy_from": seeded(), "alg": 1}):
        with pytest.raises(AssertionError):
            Generator(**keywords)
    with pytest.raises(ValueError, match="maxval=None"):
        seeded().uniform([2], dtype=tf.int32)
    with pytest.raises(NotImplementedError, match="eager"):
        seeded().split(2)
    with pytest.raises(tf.errors.UnimplementedError, match="ThreeFry"):
        run(Generator.from_seed(5, "threefry").normal([3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must end with"):
        run(seeded().binomial([4], [10.0], [0.5]))


def test_types_that_are_not_drawn() -> None:
    handle = seeded().state.handle
    one, shape = np.int64(1), np.int64([2])
    for node, message in (
        (F.StatefulStandardNormalV2(handle, one, shape, dtype=tf.int32), "floating-point numbers only"),
        (F.StatefulUniformFullInt(handle, one, shape, dtype=tf.float32), "integers only, not float32"),
        (F.StatefulUniformInt(handle, one, shape, 1.0, 2.0, dtype=tf.float32), "integers only, not float32"),
        (F.NonDeterministicInts(shape, dtype=tf.float32), "integers only, not float32"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(node)


def test_non_deterministic_integers_take_all_values() -> None:
    for dtype, least in ((tf.int32, -(2**31)), (tf.uint32, 0), (tf.int64, -(2**63)), (tf.uint64, 0)):
        node = F.NonDeterministicInts([50, 4], dtype=dtype)
        assert node.shape.as_list() == [50, 4]
        one, other = run(node), run(node)
        assert (one != other).mean() > 0.95
        assert one.dtype == dtype.as_numpy_dtype
        shares = (one.astype(float) - least) / 2.0 ** (8 * dtype.size)
        assert abs(shares.mean() - 0.5) < 0.11
        assert shares.min() < 0.1
        assert shares.max() > 0.9
