"""Gradients of convolutions of the same images in one: graph text, equal results, and where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.rewriting.memory import joined_values

NAME = "join_convolutions"
OUTPUTS = (4, 5, 3)
RNG = np.random.default_rng(31)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


class Block:
    """Convolutions of the same images `x`, side by side, with the `gradients` by `filters`, `biases`, `x`."""

    def __init__(self, activation: Any = tf.nn.relu, stride: int = 1, **options: Any) -> None:
        self.feed = {tf.placeholder(tf.float32, [2, 6, 7, 16], name="x"): values(2, 6, 7, 16)}
        (self.x,) = self.feed
        sizes, resources = options.pop("sizes", (1, 1, 1)), options.pop("resources", False)
        has_biases = options.pop("biases", True)
        self.filters: list[Any] = []
        self.biases: list[Any] = []
        self.convolutions: list[Any] = []
        branches = []
        for k, (outputs, size) in enumerate(zip(OUTPUTS, sizes)):
            given = tf.constant_initializer(values(size, size, 16, outputs))
            shape = [size, size, 16, outputs]
            w = tf.get_variable(f"w{k}", shape, initializer=given, use_resource=resources)
            y = tf.nn.conv2d(self.x, w, [1, stride, stride, 1], "SAME")
            self.filters.append(w)
            self.convolutions.append(y)
            if has_biases:
                self.biases.append(tf.get_variable(f"b{k}", [outputs], initializer=tf.zeros_initializer()))
                y = tf.nn.bias_add(y, self.biases[-1])
            branches.append(activation(y))
        pooled = tf.nn.avg_pool(self.x, [1, 3, 3, 1], [1, stride, stride, 1], "SAME")
        self.y = tf.concat([*branches, pooled], 3)
        self.loss = tf.reduce_mean(tf.square(self.y))
        self.gradients = tf.gradients(self.loss, [*self.filters, *self.biases, self.x])

    def joined(self, monkeypatch: Any, fetches: Any = None) -> str:
        """How the plan came about, whose results agree with those of one without the pass."""
        setup = tf.global_variables_initializer()
        fetches = self.gradients if fetches is None else fetches
        return agree(monkeypatch, fetches, self.feed, NAME, fires=1, setup=setup, tolerance=1e-5)


def test_gradients_of_the_same_images_are_one() -> None:
    block = Block()
    before, after = (text(block.gradients, [block.x], *names) for names in ((), (NAME,)))
    kinds = ("Conv2DBackpropFilter", "Conv2DBackpropInput", "BiasAddGrad", "ReluGrad")
    assert [ops(before).count(kind) for kind in kinds] == [3, 3, 3, 3]
    assert [ops(after).count(kind) for kind in kinds] == [1, 1, 1, 0]
    (relu,) = [line for line in after if "_JoinedReluGrad" in line]
    assert relu.count("%") == 7 and "float32[2,6,7,12]" in relu
    (filters,) = [line for line in after if "_JoinedFilters" in line]
    assert "float32[1,1,16,12]" in filters
    (total,) = [line for line in after if "AddN" in line]
    assert total.count("%") == 3  # the joint gradient, and that through the pooling


@pytest.mark.parametrize("resources", [False, True])
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("activation", [tf.nn.relu, tf.nn.elu])
@pytest.mark.parametrize("stride", [1, 2])
def test_results_agree(monkeypatch, activation, stride, biases, resources) -> None:
    log = Block(activation, stride, biases=biases, resources=resources).joined(monkeypatch)
    assert log.count(f"{NAME}: ") == 1
    assert ("_JoinedReluGrad" in log) == (activation is tf.nn.relu)


def test_a_gradient_that_others_take_is_concatenated(monkeypatch) -> None:
    """The gradients with respect to the results of the convolutions are fetched, too."""
    block = Block()
    by_results = tf.gradients(block.loss, [convolution.op.outputs[0] for convolution in block.convolutions])
    gradients = tf.gradients(block.loss, [*block.filters, block.x, *block.convolutions])
    log = block.joined(monkeypatch, [*gradients, *by_results])
    assert f"{NAME}: " in log and "_JoinedReluGrad" not in log


def test_variables_become_the_same(monkeypatch) -> None:
    """The joint filters are taken before any of them changes."""
    block = Block()
    rate = tf.train.MomentumOptimizer(0.1, 0.9)
    steps = []
    with tf.control_dependencies([rate.minimize(block.loss)]):
        changed = [tf.identity(each.read_value()) for each in (*block.filters, *block.biases)]
    for disabled in (flags.DISABLED_PASSES, flags.DISABLED_PASSES | {NAME}):
        with tf.Session() as session:
            without = disabled
            session.planner.options = session.planner.options._replace(disabled_passes=without)
            session.run(tf.global_variables_initializer())
            steps.append([session.run([block.loss, *changed], block.feed) for _ in range(3)])
    for on, off in zip(*steps):
        for a, b in zip(on, off):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_change_between_gradients_is_seen(monkeypatch) -> None:
    """A filter is taken as it was before the change by the first gradients, and as it is by the second."""
    block = Block()
    update = block.filters[0].assign_sub(block.gradients[0])
    with tf.control_dependencies([update]):
        again = tf.gradients(tf.reduce_mean(tf.square(block.y)), [*block.filters, block.x])
    block.joined(monkeypatch, [*block.gradients, update, *again])


@pytest.mark.parametrize("changes", ["nothing", "counter", "filter"])
def test_gradients_stay_if_a_filter_changes_between_them(changes) -> None:
    x, *by_results = (tf.placeholder(tf.float32, [2, 6, 7, n]) for n in (16, 4, 5))
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
    terms, fetches = [], []
    for k, dy in enumerate(by_results):
        shape, geometry = [1, 1, 16, int(dy.shape[3])], ([1, 1, 1, 1], "SAME")
        w = tf.get_variable(f"w{k}", initializer=tf.constant(values(*shape)))
        terms.append(tf.nn.conv2d_backprop_input([2, 6, 7, 16], w, dy, *geometry))
        fetches.append(tf.nn.conv2d_backprop_filter(x, shape, dy, *geometry))
        if changes != "nothing":
            changed = counter if changes == "counter" else w
            fetches.append(tf.assign_add(changed, tf.ones_like(changed)))
    lines = text([*fetches, tf.add_n(terms)], [x, *by_results], NAME)
    assert ops(lines).count("Conv2DBackpropFilter") == (2 if changes == "filter" else 1)


def test_other_windows_stay() -> None:
    for sizes, joint in (((1, 3, 1), 2), ((3, 1, 3), 0)):
        with tf.Graph().as_default():
            block = Block(sizes=sizes)
            lines = text(block.gradients, [block.x], NAME)
        found = [line for line in lines if "_JoinedFilters" in line]
        assert len(found) == bool(joint)
        assert ops(lines).count("Conv2DBackpropFilter") == 3 - max(joint - 1, 0)


def test_what_would_be_copied_is_weighed() -> None:
    """Filters of many channels over few positions are not read again for nothing."""
    x = tf.placeholder(tf.float32, [1, 2, 2, 16])
    filters = [tf.constant(values(1, 1, 16, n)) for n in (64, 64)]
    y = tf.concat([tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")) for w in filters], 3)
    gradients = tf.gradients(tf.reduce_sum(tf.square(y)), [*filters, x])
    assert ops(text(gradients, [x], NAME)).count("Conv2DBackpropFilter") == 2


def test_a_sum_of_nothing_else_is_the_joint_gradient(monkeypatch) -> None:
    block = Block()
    convolved = tf.concat([tf.nn.relu(y) for y in block.convolutions], 3)
    gradients = tf.gradients(tf.reduce_mean(tf.square(convolved)), [*block.filters, block.x])
    assert "AddN" not in ops(text(gradients, [block.x], NAME))
    assert f"{NAME}: " in block.joined(monkeypatch, gradients)


def test_activations_that_a_concatenation_holds_are_let_go(monkeypatch) -> None:
    """The joint gradient of the relus reads their results there."""
    monkeypatch.setattr(joined_values, "WORTHWHILE", 1)
    block = Block()
    fetches = [*block.gradients, tf.reduce_sum(block.y) * tf.reduce_sum(block.gradients[-1])]
    lines = text(fetches, [block.x], NAME, "read_joined_values")
    (relus,) = [line for line in lines if "_JoinedReluGrad" in line]
    parts = [line.split(" = ")[0] for line in lines if "SplitV" in line]
    taken = relus[relus.index("(") + 1 : relus.index(")")].split(", ")
    assert len({x.split(":")[0] for x in taken[3:]}) == 1 and taken[3] in parts
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, fetches, block.feed, NAME, "read_joined_values", fires=(1, 3), setup=setup)
    assert log.count("read_joined_values: ") == 3
