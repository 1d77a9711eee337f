"""Word vectors: vocabularies and steps are TensorFlow's; pairs and negatives are drawn, and valid.

Numbers named TensorFlow's are what 1.15.5 gave for the same GraphDef of version 18.
"""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.networks import word_vectors

IN = [[1.0, 2.0], [0.5, -1.0], [0.3, 0.4]]
OUT = [[0.2, 0.1], [-0.3, 0.6], [0.7, 0.5]]


@pytest.fixture(autouse=True)
def old_graph() -> None:
    tf.get_default_graph().producer = 18  # later ones have neither op


def skipgram(tmp_path: pathlib.Path, text: bytes, **attributes: Any) -> Any:
    path = tmp_path / "text"
    path.write_bytes(text)
    attributes = {"batch_size": 8, "window_size": 2, "min_count": 0, "subsample": 0.0, **attributes}
    return tf.raw_ops.Skipgram(filename=str(path), **attributes)


def batches(node: Any, count: int) -> list[Any]:
    with tf.Session() as session:
        return [session.run(node) for _ in range(count)]


def test_the_vocabulary_is_tensorflows(tmp_path: pathlib.Path) -> None:
    text = b"a b c d a b a a\nc d e a b c\n" * 3
    found = batches(skipgram(tmp_path, text, min_count=4, subsample=0.5), 1)[0]
    # TensorFlow's: UNK a c b d, 3 15 9 9 6, 42; words of one count are in any order there.
    assert found.vocab_word[0] == b"UNK"
    assert dict(zip(found.vocab_word, found.vocab_freq.tolist(), strict=True)) == {
        b"UNK": 3, b"a": 15, b"b": 9, b"c": 9, b"d": 6,
    }  # fmt: skip
    assert found.vocab_freq[1:].tolist() == [15, 9, 9, 6]
    assert found.words_per_epoch == 42
    assert found.words_per_epoch.dtype == found.total_words_processed.dtype == np.int64
    assert found.current_epoch.dtype == found.examples.dtype == found.labels.dtype == np.int32


def test_words_end_at_any_white_space(tmp_path: pathlib.Path) -> None:
    found = batches(skipgram(tmp_path, b"a b " * 20 + b"a\tb\nc\r d\0e  f"), 1)[0]
    assert sorted(found.vocab_word[1:]) == [b"a", b"b", b"c", b"d\0e", b"f"]  # TensorFlow's
    assert found.vocab_freq.tolist() == [0, 21, 21, 1, 1, 1]


def test_pairs_are_of_words_within_the_window(tmp_path: pathlib.Path) -> None:
    words = [b"w%03d" % i for i in range(700)]
    found = batches(skipgram(tmp_path, b" ".join(words), window_size=3, batch_size=100), 60)
    names = found[0].vocab_word
    places = {i: int(name[1:]) for i, name in enumerate(names) if i}
    examples = [places[i] for batch in found for i in batch.examples.tolist()]
    labels = [places[i] for batch in found for i in batch.labels.tolist()]
    # A sentence has 1000 words, and goes on at the beginning of the text.
    steps = {(label - example) % 700 for example, label in zip(examples, labels, strict=True)}
    assert steps == {1, 2, 3, 697, 698, 699}
    assert examples[0] == 0
    assert {(b - a) % 700 for a, b in itertools.pairwise(examples)} == {0, 1}
    sizes = [sum(1 for _ in group) for _, group in itertools.groupby(examples)][3:900]
    for size in (2, 4, 6):  # the reach of each word is drawn, uniformly
        assert abs(sizes.count(size) / len(sizes) - 1 / 3) < 0.08
    assert set(sizes) == {2, 4, 6}


def test_words_and_epochs_are_counted(tmp_path: pathlib.Path) -> None:
    node = skipgram(tmp_path, b" ".join(b"w%d" % i for i in range(600)), window_size=1, batch_size=2)
    found = batches(node, 2100)
    processed = [int(each.total_words_processed) for each in found]
    assert processed[:4] == [2, 3, 4, 5]  # the first word has one pair, each other one two
    assert processed == sorted(processed)
    assert 2090 < processed[-1] <= 2110
    assert {int(each.current_epoch) for each in found} == {1, 3, 5}  # after 1000, 2000 and 3000 words


def test_frequent_words_are_left_out(tmp_path: pathlib.Path) -> None:
    text = b" ".join(b"often" if i % 5 else b"rare%d" % i for i in range(2000))
    node = skipgram(tmp_path, text, subsample=0.01, batch_size=5000, window_size=1)
    found = batches(node, 4)
    names = found[0].vocab_word
    share = np.mean([names[i] == b"often" for batch in found for i in batch.examples])
    wanted = 0.01 * 2000
    kept = (np.sqrt(1600 / wanted) + 1) * wanted / 1600 * 1600
    assert abs(share - kept / (kept + 400)) < 0.03


def test_a_text_that_is_too_short_or_keeps_nothing(tmp_path: pathlib.Path) -> None:
    for text, count in ((b"", 0), (b"a b c", 3)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"too little data: {count} words"):
            batches(skipgram(tmp_path, text), 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="subsample keeps"):
        batches(skipgram(tmp_path, b"a b " * 50, subsample=1e-30), 1)
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        batches(tf.raw_ops.Skipgram(filename=str(tmp_path / "nowhere"), batch_size=1), 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="-1"):
        batches(skipgram(tmp_path, b"a b " * 50, batch_size=-1), 1)
    assert batches(skipgram(tmp_path, b"a b " * 50, batch_size=0), 1)[0].examples.shape == (0,)


def test_graphs_of_now_have_neither_op(tmp_path: pathlib.Path) -> None:
    tf.get_default_graph().producer = 19
    with pytest.raises(NotImplementedError, match="Skipgram"):
        skipgram(tmp_path, b"a b " * 50)


def train(
    examples: Any, labels: Any, counts: Any, negatives: int, rate: Any = 0.1, w_in: Any = IN, w_out: Any = OUT
) -> tuple[Any, Any]:
    """Both matrices after a step."""
    first = tf.Variable(np.array(w_in, np.float32))
    second = tf.Variable(np.array(w_out, np.float32))
    step = tf.raw_ops.NegTrain(
        w_in=first,
        w_out=second,
        examples=np.array(examples, np.int32),
        labels=np.array(labels, np.int32),
        lr=np.array(rate, np.float32),
        vocab_count=counts,
        num_negative_samples=negatives,
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        return session.run([first, second])


def test_steps_are_tensorflows() -> None:
    for examples, labels, counts, negatives, row, *rows in (
        ([0], [1], [1, 1, 1], 0, [0.9913285, 2.017343], [-0.27109498, 0.6578101], OUT[2]),
        ([0, 0], [1, 1], [1, 1, 1], 0, [0.98434407, 2.0342908], [-0.24555466, 0.7097844], OUT[2]),
        # The negatives are always the third word; one drawn several times changes as often.
        ([0], [1], [0, 0, 3], 1, [0.93214107, 1.9750663], [-0.27109498, 0.6578101], [0.6154465, 0.33089304]),
        ([0], [1], [0, 0, 3], 2, [0.8840145, 1.9491912], [-0.27109498, 0.6578101], [0.5372487, 0.17449737]),
    ):
        w_in, w_out = train(examples, labels, counts, negatives)
        np.testing.assert_allclose(w_in, [row, *IN[1:]], rtol=1e-6)
        np.testing.assert_allclose(w_out, [OUT[0], *rows], rtol=1e-6)


def test_a_negative_that_is_the_label_is_skipped() -> None:
    np.testing.assert_array_equal(train([0], [1], [0, 5, 0], 4), train([0], [1], [0, 5, 0], 0))
    np.testing.assert_array_equal(train([0], [1], [0, 5, 0], -1), train([0], [1], [0, 5, 0], 0))
    assert [each.tolist() for each in train([], [], [0, 5, 0], 4)] == np.float32([IN, OUT]).tolist()


@pytest.mark.parametrize(("counts", "shares"), [([1, 16, 81, 0], [1, 8, 27]), ([0, 0, 0, 0], None)])
def test_negatives_are_drawn_by_a_power_of_their_counts(counts: Any, shares: Any) -> None:
    pairs, rate = 4000, 1e-6
    _, w_out = train([0] * pairs, [3] * pairs, counts, 5, rate, np.ones((4, 1)), np.zeros((4, 1)))
    drawn = w_out[:3, 0] / (-0.5 * rate * pairs * 5)  # each time, half the rate is taken away
    expected = np.full(3, 1 / 4) if shares is None else np.array(shares) / sum(shares)
    np.testing.assert_allclose(drawn, expected, atol=0.016)


def test_large_products_do_not_overflow() -> None:
    w_in, w_out = train([0], [1], [1, 1, 1], 3, 1.0, np.full((3, 1), 40.0), np.full((3, 1), -40.0))
    assert np.isfinite(w_in).all()
    assert np.isfinite(w_out).all()


def test_arguments_that_do_not_fit() -> None:
    for arguments, options, message in (
        (([0, 1], [1], [1, 1, 1], 1), {}, "vectors of one size"),
        (([[0]], [[1]], [1, 1, 1], 1), {}, "vectors of one size"),
        (([0], [1], [1, 1, 1], 1), {"rate": [0.1]}, "lr must be a scalar"),
        (([0], [1], [1, 1, 1], 1), {"w_in": IN[0]}, "w_in must be a matrix"),
        (([0], [1], [1, 1, 1], 1), {"w_out": OUT[:2]}, "w_in.shape == w_out.shape"),
        (([0], [1], [1, 1], 1), {}, "vocab_size mismatches: 3 vs. 2"),
        (([3], [1], [1, 1, 1], 1), {}, r"examples must be in \[0, 3\), got 3"),
        (([0], [-1], [1, 1, 1], 1), {}, r"labels must be in \[0, 3\), got -1"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            train(*arguments, **options)


def test_words_that_keep_company_become_alike(tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(1)
    groups = [[b"a%d" % i for i in range(4)], [b"b%d" % i for i in range(4)]]
    text = b" ".join(b" ".join(random.choice(groups[i % 2], 20)) for i in range(200))
    corpus = word_vectors.Corpus(text, 0)
    size = len(corpus.frequencies)
    node = skipgram(tmp_path, text, batch_size=200)
    start = random.normal(size=(size, 8)) * 0.1
    first, second = tf.Variable(np.float32(start)), tf.Variable(np.zeros((size, 8), np.float32))
    step = tf.raw_ops.NegTrain(
        w_in=first, w_out=second, examples=node.examples, labels=node.labels, lr=0.1,
        vocab_count=corpus.frequencies.tolist(), num_negative_samples=5,
    )  # fmt: skip
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(step)
        vectors, names = session.run([first, node.vocab_word])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = vectors[1:] @ vectors[1:].T
    same = np.array([[a[:1] == b[:1] for a in names[1:]] for b in names[1:]])
    assert alike[same].mean() > alike[~same].mean() + 0.4
