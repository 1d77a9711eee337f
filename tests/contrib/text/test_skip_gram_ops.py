"""Skip-gram pairs; those of seeds are TensorFlow 1.15.5's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

text = tf.contrib.text
LETTERS = list("abcdefghijklmnopqrstuvwxy")


def joined(pairs: Any) -> str:
    return " ".join("".join(word.decode() for word in side) for side in pairs)


def sampled(make: Any) -> list[str]:
    """Tokens and labels of two runs."""
    with tf.Graph().as_default(), tf.Session() as session:
        pairs = make()
        session.run(tf.tables_initializer())
        return [joined(session.run(pairs)) for _ in range(2)]


@pytest.mark.parametrize(
    ("size", "skips", "part", "first", "second"),
    [
        (6, (0, 3), (0, -1), "aaabbbbeeee bcdacdebcdf", "abbccccfff bacabdecde"),
        (25, (0, 3), (3, 10), "dddeeeehhhhhhllm efgdfghefgijkkml",
         "eeeefffffhhiiiijjjjjjlllm dfghdeghigighjkghiklmjkml"),
        (5, (1, 1), (2, 20), "cdde dced", "cdde dced"),
        (5, (1, 1), (0, 0), " ", " "),
        (5, (0, 0), (0, -1), " ", " "),
        (5, (2, 2), (7, -1), " ", " "),
    ],
)  # fmt: skip
def test_windows_of_drawn_sizes(
    size: int, skips: tuple[int, int], part: tuple[int, int], first: str, second: str
) -> None:
    words = LETTERS[:size]
    assert sampled(lambda: text.skip_gram_sample(tf.constant(words), *skips, *part, seed=3)) == [
        first,
        second,
    ]


def test_words_that_are_their_own_labels() -> None:
    found = sampled(lambda: text.skip_gram_sample(LETTERS[:6], 1, 2, emit_self_as_target=True, seed=1))
    assert found == [
        "aaabbbbcccccdddeeeeff abcabcdabcdecdecdefef",
        "aaabbbcccdddddeeeeff abcabcbcdbcdefcdefef",
    ]


def counts(dtype: Any = np.int64) -> Any:
    pairs = tf.contrib.lookup.KeyValueTensorInitializer(["a", "b", "c"], np.array([5, 1, 10], dtype))
    return tf.contrib.lookup.HashTable(pairs, -1)


@pytest.mark.parametrize(
    ("arguments", "first", "second"),
    [
        ({}, "abbccaac bacbacca", "abbccaac bacbacca"),
        ({"max_skips": 2, "vocab_min_count": 5}, "aacccaaac caaacacca", "aaccaacc caaaccca"),
    ],
)
def test_counts_of_a_table(arguments: dict[str, Any], first: str, second: str) -> None:
    keywords = {"max_skips": 1, "seed": 1, **arguments}
    found = sampled(lambda: text.skip_gram_sample(list("abzcac"), 1, vocab_freq_table=counts(), **keywords))
    assert found == [first, second]


def test_frequent_words_are_thinned() -> None:
    found = sampled(
        lambda: text.skip_gram_sample(
            list("abzcac" * 2), 1, 2, seed=1, vocab_freq_table=counts(), vocab_min_count=5,
            vocab_subsampling=0.1, corpus_size=16,
        )
    )  # fmt: skip
    assert found == ["ccaaaaaaaccaaac aacaccacaaaacca", "aaccaaccccaaaaccaacc caaacccaacaccaaaccca"]


def test_batches() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tokens, labels = text.skip_gram_sample(tf.range(9), 1, 1, batch_size=4)
        assert tokens.shape.as_list() == labels.shape.as_list() == [4]
        assert graph.get_operation_by_name("skip_gram_sample/batch/fifo_queue").get_attr("capacity") == 400
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert [x.tolist() for x in session.run([tokens, labels])] == [[0, 1, 1, 2], [1, 0, 2, 1]]
        coordinator.request_stop()
        coordinator.join(threads)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocab_min_count": 5}, "vocab_freq_table is not provided, but vocab_min_count=5"),
        ({"corpus_size": 5}, "or corpus_size=5 is not None"),
        ({"min_skips": [1]}, "Shape must be rank 0 but is rank 1"),
    ],
)
def test_what_is_refused_when_built(arguments: dict[str, Any], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        text.skip_gram_sample(["a"], **arguments)


@pytest.mark.parametrize(
    ("skips", "start", "message"),
    [
        ((3, 1), 0, "min_skips must be <= max_skips"),
        ((-3, 1), 0, "Both min_skips and max_skips must be >= 0"),
        ((1, 1), -1, "start must be >= 0, got -1"),
    ],
)
def test_what_is_refused_in_the_step(skips: tuple[int, int], start: int, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sampled(lambda: text.skip_gram_sample(["a"], *skips, start))


@pytest.fixture
def vocabulary(tmp_path: Path) -> str:
    path = tmp_path / "words.csv"
    path.write_text("o;fr;42\ne;en;777\na;es;99\n")
    return str(path)


def of_file(path: str, **arguments: Any) -> Any:
    keywords = {"vocab_freq_index": 2, "vocab_delimiter": ";", "max_skips": 1, "seed": 2, **arguments}
    return text.skip_gram_sample_with_text_vocab(list("eaoxa" * 2), path, **keywords)


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        ({}, "eaaooaaeeaaooa aeoaaoeaaeoaao"),
        ({"vocab_subsampling": 0.05}, "aooaaaaooa oaaoaaoaao"),
        ({"vocab_subsampling": 0.05, "corpus_size": 1000}, "aooaaaaooa oaaoaaoaao"),
        ({"vocab_min_count": 50}, "eaaaaeeaaa aeaaeaaeaa"),
        ({"vocab_freq_dtype": tf.int64, "max_skips": 2}, "eeaaooaaaaeeeeaaaaoooaa aoeoaaaoeaoaaoaeoaeaaao"),
    ],
)
def test_counts_of_a_file(vocabulary: str, arguments: dict[str, Any], first: str) -> None:
    assert sampled(lambda: of_file(vocabulary, **arguments))[0] == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocab_token_index": -1}, "vocab_token_index=-1 and vocab_freq_index=2 must both be >= 0"),
        ({"vocab_token_index": 2}, "should be different, but are both 2"),
        (
            {"vocab_freq_index": 5},
            "only has 3 columns, so vocab_token_index=0 or vocab_freq_index=5 is out of",
        ),
        ({"vocab_freq_index": 1}, "could not convert string to float: 'fr'"),
        ({"vocab_subsampling": 0.1, "corpus_size": 10}, r"greater than or equal to the sum .* \(918.0\)"),
    ],
)
def test_files_that_are_refused(vocabulary: str, arguments: dict[str, Any], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        of_file(vocabulary, **arguments)


def test_counts_are_not_negative(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("e;en;-42\n")
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"has negative frequency of -42\.0"):
        of_file(str(path))
