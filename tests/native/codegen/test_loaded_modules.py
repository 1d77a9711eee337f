"""Modules of machine code stay loaded while a function of them is in use, or is one of the last."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np

import flowstone as tf
from flowstone.native.clusters import kernels
from flowstone.native.codegen import making
from flowstone.native.codegen.compiler import Module
from flowstone.native.codegen.loaded_modules import LoadedModules


def module(is_quick: bool = False) -> Module:
    made = Module(None, {"new": 1})
    made.is_quick = is_quick
    return made


def test_what_came_first_stays() -> None:
    modules, first = LoadedModules(2), module()
    assert modules.kept("a", first) is first
    assert modules.kept("a", module()) is first
    assert modules.found("a", quickly=False) is first


def test_quick_code_is_for_who_asks_for_it() -> None:
    modules, quick, best = LoadedModules(9), module(is_quick=True), module()
    modules.kept("a", quick)
    assert modules.found("a", quickly=False) is None
    assert modules.found("a", quickly=True) is quick
    modules.kept("a", best)
    assert modules.found("a", quickly=True) is best


def test_the_last_ones_stay_and_those_in_use() -> None:
    modules = LoadedModules(2)
    used = modules.kept("used", module())
    for key in "abc":
        modules.kept(key, module())
    modules.found("b", quickly=False)
    modules.kept("d", module())
    assert sorted(modules._best) == ["b", "d", "used"] and used is not None


def sums(sizes: range) -> list[float]:
    found = []
    for size in sizes:
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [size])
            fetched = tf.reduce_sum(tf.tanh(x) * tf.exp(x) + 1)
            found.append(float(session.run(fetched, {x: np.zeros(size)})))
    return found


def test_programs_that_make_ever_new_graphs_do_not_collect_code(monkeypatch) -> None:
    monkeypatch.setattr(kernels.flags, "NATIVE", 2)
    monkeypatch.setattr(kernels, "_modules", LoadedModules(3))
    assert sums(range(100, 120)) == [float(size) for size in range(100, 120)]
    gc.collect()
    assert len(kernels._modules) <= 6  # the last plans may be held by whoever ran them


def test_a_function_holds_its_code(monkeypatch) -> None:
    monkeypatch.setattr(kernels.flags, "NATIVE", 2)
    monkeypatch.setattr(kernels, "_modules", LoadedModules(0))
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [77])
        fetched = tf.reduce_sum(tf.tanh(x) * tf.exp(x) + 1)
        for _ in range(3):
            assert session.run(fetched, {x: np.zeros(77)}) == 77
            gc.collect()
        assert len(kernels._modules) == 1
    del session, x, fetched
    gc.collect()
    assert len(kernels._modules) == 0


def test_a_lock_lasts_as_long_as_somebody_has_it() -> None:
    locks = making.Locks()
    lock = locks.of("a")
    assert locks.of("a") is lock and locks.of("b") is not lock
    gone = weakref.ref(lock)
    del lock
    gc.collect()
    assert gone() is None
    with locks.of("a"):
        assert locks.of("a").locked()
    assert isinstance(locks.of("a"), type(threading.Lock()))
