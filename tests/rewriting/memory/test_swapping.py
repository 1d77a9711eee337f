"""Swapped activations: graph text before and after, equal results; the saving itself needs a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.analyses.memory_estimate import peak_memory
from flowstone.rewriting.invariants import check
from flowstone.rewriting.memory import swapping
from flowstone.rewriting.memory.swapping import swap_activations, swap_hinted, swap_peak
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune

NO, MANUAL, SWAPPING = 1, 2, 4


@pytest.fixture(autouse=True)
def settings(monkeypatch) -> None:
    monkeypatch.setattr(swapping, "SMALLEST", 1)


def passed(fetches, feeds):
    subgraph = prune(fetches, [], feeds)
    run_passes(
        subgraph, EVERY, {p.name for p in EVERY} - {"fold_constants", "apply_identities", "remove_unneeded"}
    )
    return subgraph


def session(memory_optimization):
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.memory_optimization = memory_optimization
    return tf.Session(config=config)


def lines(subgraph):
    return str(subgraph).splitlines()


def exponentials(count):
    x = tf.placeholder(tf.float32, [8, 4], name="x")
    y = x
    for i in range(count):
        y = tf.exp(y, name=f"exp{i}")
    return x, tf.gradients(tf.reduce_sum(y), x)


def layers(x, count):
    """Layers with weights that see their input through a view; the gradients of their loss."""
    y = x
    for i in range(count):
        w = tf.get_variable(f"w{i}", [16, 16])
        y = tf.tanh(tf.matmul(tf.reshape(y, [-1, 16]), w))
        y = tf.reshape(tf.nn.dropout(y, 0.7, seed=i), [4, -1], name=f"flat{i}")
    loss = tf.reduce_mean(tf.square(y))
    return [loss, *tf.gradients(loss, tf.trainable_variables())]


def test_text_before_and_after():
    x, gradients = exponentials(3)
    subgraph = passed(gradients, [x])
    assert lines(subgraph) == [
        "%0 = _Arg() index=0 : float32[8,4]  # x",
        "%1 = Exp(%0) : float32[8,4]  # exp0",
        "%2 = Exp(%1) : float32[8,4]  # exp1",
        "%3 = Exp(%2) : float32[8,4]  # exp2",
        "%4 = Mul(%3, %2) : float32[8,4]  # gradients/exp1_grad/mul",
        "%5 = Mul(%4, %1) : float32[8,4]  # gradients/exp0_grad/mul",
        "return %5",
    ]
    swap_peak(subgraph)
    check(subgraph)
    assert lines(subgraph) == [
        "%0 = _Arg() index=0 : float32[8,4]  # x",
        "%1 = Exp(%0) : float32[8,4]  # exp0",
        "%2 = Exp(%1) : float32[8,4]  # exp1",
        "%3 = _CopyToHost(%1) : float32[8,4]  # exp0/swapped_out",
        "%4 = Exp(%2) : float32[8,4]  # exp2",
        "%5 = Mul(%4, %2) : float32[8,4]  # gradients/exp1_grad/mul",
        "%6 = _CopyFromHost(%3) : float32[8,4]  # exp0/swapped_in",
        "%7 = Mul(%5, %6) : float32[8,4]  # gradients/exp0_grad/mul",
        "return %7",
    ]


def test_the_estimated_peak_falls():
    x, gradients = exponentials(20)
    subgraph = passed(gradients, [x])
    before = peak_memory(subgraph)
    swap_peak(subgraph)
    check(subgraph)
    assert before >= 20 * 128 and peak_memory(subgraph) <= 5 * 128
    ((_, _, reason),) = [entry for entry in subgraph.log if entry[0] == "swap_activations"]
    assert "values swapped" in reason and f"instead of {before:,}" in reason


def test_small_values_stay(monkeypatch):
    monkeypatch.setattr(swapping, "SMALLEST", 129)
    x, gradients = exponentials(20)
    subgraph = passed(gradients, [x])
    before = str(subgraph)
    swap_peak(subgraph)
    assert str(subgraph) == before


def test_values_on_the_cpu_stay():
    with tf.device("/cpu:0"):
        x, gradients = exponentials(20)
    subgraph = passed(gradients, [x])
    before = str(subgraph)
    swap_peak(subgraph)
    assert str(subgraph) == before


def test_without_a_gpu_nothing_happens(monkeypatch):
    monkeypatch.setattr(swapping, "has_gpu", lambda: False)
    x, gradients = exponentials(20)
    subgraph = passed(gradients, [x])
    before = str(subgraph)
    swap_activations(subgraph)
    swap_hinted(subgraph)
    assert str(subgraph) == before


def test_only_hinted_inputs_go(monkeypatch):
    monkeypatch.setattr(swapping, "has_gpu", lambda: True)
    x, gradients = exponentials(4)
    x.graph.get_operation_by_name("gradients/exp1_grad/mul")._set_attr("_swap_to_host", [1])
    subgraph = passed(gradients, [x])
    swap_hinted(subgraph)
    check(subgraph)
    swapped = [node.name for node in subgraph.nodes if "swapped" in node.name]
    assert swapped == ["exp1/swapped_out", "exp1/swapped_in"]


@pytest.mark.parametrize("devices", [1, 2])
def test_results_are_equal(monkeypatch, devices):
    """On CPU devices the copies are copies in the host's memory."""
    monkeypatch.setattr(swapping, "has_gpu", lambda: True)
    x = tf.placeholder(tf.float32, [4, 32])
    fetches = layers(x, 6)
    variables = tf.trainable_variables()
    random = np.random.default_rng(0)
    initial = [random.normal(size=v.shape).astype(np.float32) for v in variables]
    values = random.random((4, 32), np.float32)
    results = []
    for option in (NO, SWAPPING):
        config = tf.ConfigProto(device_count={"CPU": devices})
        config.graph_options.rewrite_options.memory_optimization = option
        with tf.Session(config=config) as sess:
            for v, value in zip(variables, initial):
                v.load(value, sess)
            results.append(sess.run(fetches, {x: values}))
            text = sess.explain(fetches, [x])
    assert "_CopyToHost" in text and "_CopyFromHost" in text
    for without, with_it in zip(*results):
        np.testing.assert_array_equal(without, with_it)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: its memory is what is saved")
def test_a_gpu_needs_less_memory():
    x = tf.placeholder(tf.float32, [4, 16 << 16])
    fetches = layers(x, 12)
    peaks, results = [], []
    values = np.random.default_rng(0).random((4, 16 << 16), np.float32)
    for option in (NO, SWAPPING):
        with session(option) as sess:
            for i, v in enumerate(tf.trainable_variables()):
                v.load(np.random.default_rng(i).normal(size=(16, 16)).astype(np.float32), sess)
            torch.cuda.reset_peak_memory_stats()
            results.append(sess.run(fetches, {x: values}))
            peaks.append(torch.cuda.max_memory_allocated())
    assert peaks[1] < 0.7 * peaks[0]
    for without, with_it in zip(*results):
        np.testing.assert_array_equal(without, with_it)
