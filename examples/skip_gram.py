"""Word vectors by skip-gram with noise-contrastive estimation, on the text of `data/kjv`.

The model of Mikolov et al. 2013 as TensorFlow 1 programs have it: the vector of a word must tell which words
stand near it, each against a sample of others (`tf.nn.nce_loss`). Very frequent words are left out more often
the more frequent they are. Shows the loss while it trains, then the nearest neighbours of some words.

    near king: jehoshaphat, hezekiah, assyria, david, joab, jeremiah
    near seven: five, three, two, thousand, six, ten
    4,000 words, 6,000 steps: loss 38.53 in the beginning, 5.06 in the end
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import flowstone as tf
from corpus import Corpus, read_words
from progress import shown_progress

WINDOW = 4
FREQUENT = 1000  # neighbours are looked for among so many of the most frequent words
QUERIES = ("king", "god", "water", "mother", "seven", "bread")


class Model(NamedTuple):
    """What training and looking up need of the graph."""

    words: Any  # int32 [batch]
    neighbours: Any  # int32 [batch, 1]
    loss: Any  # float32 []
    train: Any
    query: Any  # int32 [n]
    nearest: Any  # int32 [n, 7]: the words most similar to the queries, themselves first


def build(vocabulary: int, dimensions: int, negatives: int) -> Model:
    """The graph of the vectors [vocabulary, dimensions], with `negatives` sampled words a step."""
    tf.set_random_seed(1)
    words, neighbours = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None, 1])
    vectors = tf.Variable(tf.random_uniform([vocabulary, dimensions], -1.0, 1.0) / dimensions)
    weights = tf.Variable(tf.zeros([vocabulary, dimensions]))
    biases = tf.Variable(tf.zeros([vocabulary]))
    losses = tf.nn.nce_loss(
        weights=weights,
        biases=biases,
        labels=neighbours,
        inputs=tf.nn.embedding_lookup(vectors, words),
        num_sampled=negatives,
        num_classes=vocabulary,
    )
    loss = tf.reduce_mean(losses)
    train = tf.train.AdagradOptimizer(2.0).minimize(loss)
    query = tf.placeholder(tf.int32, [None])
    directions = tf.nn.l2_normalize(vectors, 1)
    similarity = tf.matmul(tf.gather(directions, query), directions[:FREQUENT], transpose_b=True)
    return Model(words, neighbours, loss, train, query, tf.nn.top_k(similarity, 7).indices)


def thinned(corpus: Corpus, threshold: float = 5e-4) -> np.ndarray:
    """The text's numbers without the unknown words and most occurrences of very frequent ones."""
    counts = np.bincount(corpus.ids, minlength=len(corpus.vocabulary))
    keep = np.minimum(1.0, np.sqrt(threshold * len(corpus.ids) / np.maximum(counts, 1)))
    keep[0] = 0.0
    return corpus.ids[np.random.RandomState(0).rand(len(corpus.ids)) < keep[corpus.ids]]


def pairs(ids: np.ndarray, batch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Endlessly words [batch] and, for each, one of the `WINDOW` words before or after it [batch, 1]."""
    random = np.random.RandomState(1)
    while True:
        places = random.randint(WINDOW, len(ids) - WINDOW, batch)
        steps = random.randint(1, WINDOW + 1, batch) * random.choice([-1, 1], batch)
        yield ids[places], ids[places + steps][:, None]


def neighbours_of(session: Any, model: Model, corpus: Corpus, queries: list[str]) -> dict[str, list[str]]:
    """For each query that is in the vocabulary, the six most similar other words."""
    known = [word for word in queries if word in corpus.vocabulary]
    numbers = [corpus.vocabulary.index(word) for word in known]
    rows = session.run(model.nearest, {model.query: numbers})
    return {word: [corpus.vocabulary[k] for k in row[1:]] for word, row in zip(known, rows)}


def train_vectors(
    steps: int, vocabulary: int, dimensions: int = 96, batch: int = 512, negatives: int = 64
) -> tuple[list[float], dict[str, list[str]]]:
    """Trains for `steps` batches: (the mean loss of each tenth of them, neighbours of some words)."""
    corpus = read_words(vocabulary)
    part, means = max(1, steps // 10), []
    with tf.Graph().as_default():
        model = build(len(corpus.vocabulary), dimensions, negatives)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            total = mean = 0.0
            with shown_progress("skip-gram", steps) as show:
                for step, (words, near) in zip(range(1, steps + 1), pairs(thinned(corpus), batch)):
                    feed = {model.words: words, model.neighbours: near}
                    loss = float(session.run([model.loss, model.train], feed)[0])
                    total += loss
                    mean += max(0.01, 1 / step) * (loss - mean)
                    show(step, loss=mean)
                    if step % part == 0:
                        means.append(total / part)
                        total = 0.0
            return means, neighbours_of(session, model, corpus, list(QUERIES))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=6000, help="updates (6000)")
    parser.add_argument("--vocabulary", type=int, default=4000, help="words that are told apart (4000)")
    options = parser.parse_args()
    if options.steps < 1 or options.vocabulary < 100:
        parser.error("--steps must be at least 1 and --vocabulary at least 100")
    losses, neighbours = train_vectors(options.steps, options.vocabulary)
    for word, near in neighbours.items():
        print(f"near {word}: {', '.join(near)}")
    print(
        f"{options.vocabulary:,} words, {options.steps:,} steps: loss {losses[0]:.2f} in the beginning, "
        f"{losses[-1]:.2f} in the end"
    )


if __name__ == "__main__":
    main()
