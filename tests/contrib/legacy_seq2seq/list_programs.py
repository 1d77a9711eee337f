"""Programs of `tf.contrib.legacy_seq2seq`: every model, fed its targets or its own outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

B, D, U, V = 3, 4, 4, 7
_random = np.random.RandomState(0)
READ = [_random.randn(B, D).astype("f") for _ in range(3)]
GIVEN = [_random.randn(B, D).astype("f") for _ in range(2)]
READ_IDS = [_random.randint(0, V, B) for _ in range(4)]
GIVEN_IDS = [_random.randint(0, V, B) for _ in range(3)]


def tensors(tf: Any, arrays: list[np.ndarray]) -> list[Any]:
    return [tf.constant(each) for each in arrays]


def with_gradients(tf: Any, outputs: list[Any], fetches: list[Any]) -> Any:
    return "gradients", (tf.add_n([tf.reduce_sum(each) for each in outputs]), fetches)


def basic(tf: Any) -> Any:
    cell = tf.contrib.rnn.BasicLSTMCell(U)
    outputs, state = tf.contrib.legacy_seq2seq.basic_rnn_seq2seq(tensors(tf, READ), tensors(tf, GIVEN), cell)
    return with_gradients(tf, outputs, [outputs, list(state)])


def tied(tf: Any) -> Any:
    cell = tf.contrib.rnn.GRUCell(U)
    outputs, state = tf.contrib.legacy_seq2seq.tied_rnn_seq2seq(tensors(tf, READ), tensors(tf, GIVEN), cell)
    return with_gradients(tf, outputs, [outputs, state])


def embedding(name: str, feeds: str, **arguments: Any) -> Callable[[Any], Any]:
    def program(tf: Any) -> Any:
        feed = {"static": True, "no": False}.get(feeds)
        inner = tf.contrib.rnn.BasicLSTMCell(U)
        if "tied" in name:
            cell, sizes = inner, (V, 4)
        else:
            cell, sizes = tf.contrib.rnn.MultiRNNCell([inner, tf.contrib.rnn.GRUCell(U)]), (V, V, 4)
        outputs, state = getattr(tf.contrib.legacy_seq2seq, name)(
            tensors(tf, READ_IDS),
            tensors(tf, GIVEN_IDS),
            cell,
            *sizes,
            feed_previous=tf.constant(feeds == "yes") if feed is None else feed,
            **arguments,
        )
        if feeds == "yes":  # the oracle's gradients lose what goes through the embedding of fed-back ids
            return [outputs, state]
        return with_gradients(tf, outputs, [outputs, state])

    return program


def projected(tf: Any) -> Any:
    projection = tf.get_variable("pw", [U, V]), tf.get_variable("pb", [V])
    outputs, state = tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
        tensors(tf, READ_IDS),
        tensors(tf, GIVEN_IDS),
        tf.contrib.rnn.BasicLSTMCell(U),
        V,
        V,
        4,
        output_projection=projection,
        feed_previous=True,
    )
    return [outputs, list(state)]


def buckets(tf: Any) -> Any:
    legacy, found = tf.contrib.legacy_seq2seq, []

    def model(scope: str | None) -> Callable[[Any, Any], Any]:
        return lambda x, y: legacy.embedding_attention_seq2seq(
            x, y, tf.contrib.rnn.GRUCell(U), V, V, 4, scope=scope
        )

    for scope in (None, "two"):
        given, weights = tensors(tf, GIVEN_IDS), [tf.ones([B])] * 3
        found.append(
            legacy.model_with_buckets(
                tensors(tf, READ_IDS),
                given,
                given,
                weights,
                [(2, 1), (4, 3)],
                model(scope),
                per_example_loss=scope is not None,
            )
        )
    return "gradients", (found[0][1][1], found)


def one_to_many(tf: Any) -> Any:
    def cell() -> Any:
        return tf.contrib.rnn.BasicLSTMCell(U)

    outputs, states = tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(
        tensors(tf, READ_IDS),
        {"a": tensors(tf, [each % 3 for each in GIVEN_IDS]), "b": tensors(tf, READ_IDS)},
        cell(),
        {"a": cell(), "b": cell()},
        V,
        {"a": 3, "b": V},
        4,
    )
    return [outputs["a"], outputs["b"], list(states["a"])]


def heads(tf: Any) -> Any:
    outputs, state = tf.contrib.legacy_seq2seq.attention_decoder(
        tensors(tf, GIVEN),
        tf.ones([B, U]),
        tf.stack(tensors(tf, READ), 1),
        tf.contrib.rnn.GRUCell(U),
        output_size=3,
        num_heads=2,
        initial_state_attention=True,
    )
    return [outputs, state]


def projections(tf: Any) -> Any:
    rnn, x, state = tf.contrib.rnn, tf.constant(READ[0]), tf.ones([B, U])
    into = rnn.InputProjectionWrapper(rnn.GRUCell(U), 3, tf.tanh)
    out = rnn.OutputProjectionWrapper(rnn.GRUCell(U), 2, activation=tf.nn.relu)
    embedded = rnn.EmbeddingWrapper(rnn.GRUCell(U), V, 3)
    steps = [list(into(x, state)), list(out(x, state)), list(embedded(tf.constant(READ_IDS[0]), state))]
    sequence = tensors(tf, READ)
    whole = [tf.nn.dynamic_rnn(out, tf.stack(sequence), dtype=tf.float32, scope="z")]
    whole.append(tf.nn.static_rnn(into, sequence, dtype=tf.float32, scope="y"))
    return [steps, whole]


_KINDS = ("embedding_rnn_seq2seq", "embedding_attention_seq2seq", "embedding_tied_rnn_seq2seq")
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "basic": basic,
    "tied": tied,
    **{
        f"{kind} {feeds}": embedding(kind, feeds)
        for kind in _KINDS
        for feeds in ("no", "static", "yes", "fed")
    },
    "two heads": embedding(_KINDS[1], "no", num_heads=2, initial_state_attention=True),
    "projected": projected,
    "buckets": buckets,
    "one to many": one_to_many,
    "heads": heads,
    "projections": projections,
}
