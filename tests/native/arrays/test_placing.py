"""Rows put at places and inverted permutations by machine code, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.arrays import placing
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.fixture(autouse=True)
def compiled(monkeypatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)


def made(index: torch.dtype) -> placing.Placing:
    found = placing.placing(index)
    assert found is not None
    return found


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize("index", ["i32", "i64"])
def test_the_text_is_valid(monkeypatch, team, index) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = placing.placing_code(index)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"put", "invert"}


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("size", [1, 3, 8, 31, 40, 100, 20_000])
def test_of_rows_for_one_place_the_last_stays(index, size) -> None:
    random = np.random.default_rng(size)
    table, rows = (torch.from_numpy(random.integers(0, 255, (n, size), dtype=np.uint8)) for n in (70, 200))
    indices = torch.from_numpy(random.integers(0, 70, 200)).to(index)
    expected = table.numpy().copy()
    for i, place in enumerate(indices.tolist()):
        expected[place] = rows[i].numpy()
    assert made(index).put(table, indices, rows)
    np.testing.assert_array_equal(table.numpy(), expected)


@pytest.mark.parametrize("wrong", [-1, 3])
@pytest.mark.parametrize("place", [0, 5])
def test_nothing_changes_where_an_index_is_out_of_bounds(wrong, place) -> None:
    table, indices = torch.zeros(3, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    indices[place] = wrong
    assert not made(torch.int64).put(table, indices, torch.ones(6, 4))
    assert not table.any()


@pytest.mark.parametrize("native", [0, 2])
def test_an_update_out_of_bounds_is_an_error(monkeypatch, native) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    with tf.Graph().as_default(), tf.Session() as session:
        table, fed = tf.Variable(tf.zeros([3, 2])), tf.placeholder(tf.int32, [2])
        session.run(tf.global_variables_initializer())
        update = tf.scatter_update(table, fed, tf.ones([2, 2]))
        np.testing.assert_array_equal(session.run(update, {fed: [2, 0]}), [[1, 1], [0, 0], [1, 1]])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 3"):
            session.run(update, {fed: [1, 3]})


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("count", [51, 100_000, 250_001])  # the last by a team
def test_an_inverse(dtype, count, set_profile) -> None:
    set_profile(placed_team=200_000)
    given = np.random.default_rng(count).permutation(count).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(dtype, [None])
        inverse = tf.invert_permutation(fed)
        np.testing.assert_array_equal(session.run(inverse, {fed: given}), np.argsort(given))
        for wrong in (-1, count, given[7]):
            other = given.copy()
            other[3] = wrong
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"duplicated|not between"):
                session.run(inverse, {fed: other})


@pytest.mark.parametrize(("least", "is_shared"), [(1000, True), (1001, False)])
def test_a_team_inverts_from_so_many_elements_on(least, is_shared, set_profile, monkeypatch) -> None:
    set_profile(placed_team=least)
    code, threads = placing.Placing("i32"), []
    call = code._library.call

    def noted(name, words, places) -> None:
        threads.append(words["threads"])
        call(name, words, places)

    monkeypatch.setattr(code._library, "call", noted)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert code.invert(torch.arange(1000, dtype=torch.int32).flip(0)) is not None
    assert threads == [2 if is_shared else 1]
