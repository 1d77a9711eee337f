"""What a training step's forward part leaves for the gradients."""

from __future__ import annotations

import flowstone as tf
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.analyses.stashes import Stashes, is_gradient
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune


def passed(fetches, feeds):
    subgraph = prune(fetches, [], feeds)
    return run_passes(subgraph, EVERY, {p.name for p in EVERY} - {"fold_constants", "apply_identities"})


def names(stashes):
    return [stash.value.op.name for stash in stashes.found]


def chain(length):
    x = tf.placeholder(tf.float32, [64, 32], name="x")
    y = x
    for i in range(length):
        w = tf.get_variable(f"w{i}", [32, 32])
        y = tf.tanh(tf.matmul(y, w), name=f"layer{i}")
    return x, y


def test_stashes_are_what_waits_for_gradients():
    x, y = chain(4)
    subgraph = passed(tf.gradients(tf.reduce_mean(tf.square(y)), tf.trainable_variables()), [x])
    stashes = Stashes(subgraph)
    assert names(stashes) == ["layer0", "layer1", "layer2", "layer3"]
    assert {stash.size for stash in stashes.found} == {64 * 32 * 4}
    lates = [stash.late for stash in stashes.found]
    assert lates == sorted(lates, reverse=True)
    for stash in stashes.found:
        assert stash.start <= stash.early <= stashes.turn < stash.late
        assert is_gradient(subgraph.nodes[stash.late])
    assert not is_gradient(subgraph.nodes[stashes.turn])


def test_what_is_fetched_fed_or_state_is_none():
    x, y = chain(4)
    middle = x.graph.get_tensor_by_name("layer1:0")
    gradients = tf.gradients(tf.reduce_mean(tf.square(y)), tf.trainable_variables())
    assert names(Stashes(passed([middle, *gradients], [x]))) == ["layer0", "layer2", "layer3"]
    fed = Stashes(passed(gradients, [middle, x]))
    assert names(fed) == ["layer0", "layer2", "layer3"]


def test_a_view_counts_as_what_it_shows():
    x = tf.placeholder(tf.float32, [8, 4])
    y = tf.tanh(x, name="tanh")
    z = tf.exp(tf.reshape(y, [-1], name="flat"), name="exp")
    (gradient,) = tf.gradients(tf.reduce_sum(tf.square(z)), y)
    gradient = tf.identity(gradient)
    with tf.name_scope("gradients/"):
        total = tf.multiply(tf.reshape(gradient, [-1]), y.graph.get_tensor_by_name("flat:0"), name="use")
    subgraph = passed([total], [x])
    stashes = Stashes(subgraph)
    flat = next(node for node in subgraph.nodes if node.name == "flat").outputs[0]
    assert stashes.root[flat] is flat.op.inputs[0]
    assert "tanh" in names(stashes)


def test_a_view_with_an_effect_is_not_one_that_can_be_made_again():
    x = tf.placeholder(tf.float32, [8, 4])
    shown = tf.Print(tf.tanh(x), [x])
    subgraph = passed(tf.gradients(tf.reduce_sum(tf.square(shown)), x), [x])
    (node,) = [node for node in subgraph.nodes if node.type == "Print"]
    assert Stashes(subgraph).root[node.outputs[0]] is None


def test_gradients_are_known_by_their_scope():
    x, y = chain(1)
    with tf.name_scope("tower"):
        (gradient,) = tf.gradients(y, x)
        (second,) = tf.gradients(gradient, x)
    assert is_gradient(gradient.op) and is_gradient(second.op)
    assert "/gradients_1/" in second.op.name
    assert not is_gradient(tf.identity(x, name="my_gradients/x").op)
