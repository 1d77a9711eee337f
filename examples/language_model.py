"""A language model: an LSTM that predicts the next word of `data/kjv`, run by `tf.nn.dynamic_rnn`.

Words are looked up in a table of vectors, the LSTM runs over twenty of them in a loop of the graph, a
soft-max gives the probability of each word to be the next. The state at the end of a batch is where the next
one begins, so gradients reach back twenty words and memory reaches further. Shows the perplexity of the
training batches, then measures it on text that was kept apart and lets the model go on by itself.

    and the lord said unto our strength shall hath know the priest is nothing . i may bless thee , and …
    validation perplexity 102.6 of 3,000 words, 500 steps in 25 s
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numpy as np

import flowstone as tf
from corpus import Corpus, columns, read_words
from progress import shown_progress

BATCH, LENGTH = 32, 20
HELD_OUT = 20_000  # words at the end of the text, for validation
START = "and the lord said unto"


class Model(NamedTuple):
    """What training, validation and writing need of the graph."""

    words: Any  # int32 [batch, length]
    targets: Any  # int32 [batch, length]: the words after these
    keep: Any  # float32 []: the share of activations that dropout keeps; 1 if not fed
    first_state: Any  # (c, h) before the words, each float32 [batch, units]; zeros if not fed
    last_state: Any  # (c, h) after them
    loss: Any  # float32 []: nats a word
    train: Any
    next_word: Any  # int32 [batch]: drawn from what the model expects after the last word


def build(vocabulary: int, units: int) -> Model:
    """The graph of the language model, with gradients clipped to a norm of 5 and Adam."""
    tf.set_random_seed(1)
    words = tf.placeholder(tf.int32, [None, None], name="words")
    targets = tf.placeholder(tf.int32, [None, None], name="targets")
    keep = tf.placeholder_with_default(1.0, [], name="keep")
    cell = tf.nn.rnn_cell.LSTMCell(units)
    first_state = cell.zero_state(tf.shape(words)[0], tf.float32)
    table = tf.get_variable(
        "table", [vocabulary, units], initializer=tf.random_uniform_initializer(-0.1, 0.1)
    )
    inputs = tf.nn.dropout(tf.nn.embedding_lookup(table, words), keep)
    outputs, last_state = tf.nn.dynamic_rnn(cell, inputs, initial_state=first_state)
    hidden = tf.reshape(tf.nn.dropout(outputs, keep), [-1, units])
    weights = tf.get_variable("weights", [units, vocabulary])
    bias = tf.get_variable("bias", [vocabulary], initializer=tf.zeros_initializer())
    logits = tf.matmul(hidden, weights) + bias
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(targets, [-1]), logits=logits)
    loss = tf.reduce_mean(losses)
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    train = tf.train.AdamOptimizer(3e-3).apply_gradients(zip(gradients, variables))
    after = tf.matmul(outputs[:, -1], weights) + bias
    # Number 0 is every unknown word: the model shall not write it.
    expected = tf.concat([tf.fill([tf.shape(words)[0], 1], -1e9), after[:, 1:]], 1)
    next_word = tf.cast(tf.multinomial(expected, 1, seed=4)[:, 0], tf.int32)
    return Model(words, targets, keep, first_state, last_state, loss, train, next_word)


def train_epochs(session: Any, model: Model, ids: np.ndarray, steps: int, show: Any) -> None:
    """`steps` updates, batch after batch along the text and from its beginning again."""
    text, state, at, mean = columns(ids, BATCH), None, 0, 0.0
    for step in range(1, steps + 1):
        if at + LENGTH + 1 > text.shape[1]:
            state, at = None, 0
        feed = feed_of(model, text, at, state)
        feed[model.keep] = 0.8
        loss, state, _ = session.run([model.loss, model.last_state, model.train], feed)
        at += LENGTH
        mean += max(0.02, 1 / step) * (float(loss) - mean)
        show(step, perplexity=np.exp(mean))


def feed_of(model: Model, text: np.ndarray, at: int, state: Any) -> dict[Any, Any]:
    """The batch at column `at` of `text`, begun in `state`."""
    feed = {model.words: text[:, at : at + LENGTH], model.targets: text[:, at + 1 : at + LENGTH + 1]}
    if state is not None:
        feed |= dict(zip(model.first_state, state))
    return feed


def perplexity(session: Any, model: Model, ids: np.ndarray) -> float:
    """exp of the mean loss a word, over text that was not trained on."""
    text, state, losses = columns(ids, BATCH), None, []
    for at in range(0, text.shape[1] - LENGTH, LENGTH):
        loss, state = session.run([model.loss, model.last_state], feed_of(model, text, at, state))
        losses.append(loss)
    return float(np.exp(np.mean(losses)))


def continued(session: Any, model: Model, corpus: Corpus, start: str, count: int) -> str:
    """`start` and `count` words that the model draws to follow it, one after the other."""
    words = [corpus.vocabulary.index(word) for word in start.split()]
    state, fresh = None, words
    for _ in range(count):
        feed = {model.words: [fresh]}
        if state is not None:
            feed |= dict(zip(model.first_state, state))
        drawn, state = session.run([model.next_word, model.last_state], feed)
        fresh = [int(drawn[0])]
        words = words + fresh
    return " ".join(corpus.vocabulary[k] for k in words)


def train_model(steps: int, vocabulary: int, units: int) -> tuple[float, str]:
    """Trains for `steps` batches: (the validation perplexity, some words that the model wrote)."""
    corpus = read_words(vocabulary)
    with tf.Graph().as_default():
        model = build(len(corpus.vocabulary), units)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            with shown_progress("language model", steps) as show:
                train_epochs(session, model, corpus.ids[:-HELD_OUT], steps, show)
            found = perplexity(session, model, corpus.ids[-HELD_OUT:])
            return found, continued(session, model, corpus, START, 25)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=500, help="updates (500)")
    parser.add_argument("--vocabulary", type=int, default=3000, help="words that are told apart (3000)")
    parser.add_argument(
        "--units", type=int, default=128, help="units of the LSTM and of a word's vector (128)"
    )
    options = parser.parse_args()
    if options.steps < 1 or options.vocabulary < 100 or options.units < 1:
        parser.error("--steps and --units must be at least 1, --vocabulary at least 100")
    start = time.perf_counter()
    found, text = train_model(options.steps, options.vocabulary, options.units)
    print(text)
    print(
        f"validation perplexity {found:.1f} of {options.vocabulary:,} words, {options.steps:,} steps "
        f"in {time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
