"""Texts and categories as ids; the expected values are those of TensorFlow 1.15.5 for the same calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flowstone as tf

learn = tf.contrib.learn.preprocessing
TEXTS = ["Hello World, it's HTMLParser time", "hello hello foo-bar x", "I'm here ABCd A über 12", ""]
GOLDEN = Path(__file__).parents[3] / "golden" / "contrib"


def test_tokenizer() -> None:
    assert list(learn.tokenizer(TEXTS)) == [
        ["Hello", "World", "it's", "HTML", "Parser", "time"],
        ["hello", "hello", "foo-bar", "x"],
        ["I'm", "here", "AB", "Cd", "A", "über", "12"],
        [],
    ]
    assert learn.TOKENIZER_RE.findall("aB") == ["aB"]


def test_vocabulary_processor() -> None:
    processor = learn.VocabularyProcessor(4)
    assert processor.fit(TEXTS) is processor
    rows = list(processor.transform(TEXTS))
    assert rows[0].dtype == np.int64
    assert np.array(rows).tolist() == [[1, 2, 3, 4], [7, 7, 8, 9], [10, 11, 12, 13], [0, 0, 0, 0]]
    assert [row.tolist() for row in processor.transform(["new words hello"])] == [[0, 0, 7, 0]]
    assert list(processor.reverse(np.array([[1, 2, 0]]))) == ["Hello World <UNK>"]
    assert len(processor.vocabulary_) == 17


def test_rare_words_are_unknown() -> None:
    processor = learn.VocabularyProcessor(3, min_frequency=1)
    rows = processor.fit_transform(["a b c a", "b a d"])
    assert [row.tolist() for row in rows] == [[1, 2, 0], [2, 1, 0]]
    assert len(processor.vocabulary_) == 3


def test_own_vocabulary_and_tokenizer() -> None:
    vocabulary = learn.CategoricalVocabulary()
    for word in "abc":
        vocabulary.get(word)
    vocabulary.freeze()
    processor = learn.VocabularyProcessor(
        3, vocabulary=vocabulary, tokenizer_fn=lambda texts: (text.split("|") for text in texts)
    )
    rows = processor.transform(["a|b", "z|c|a|b"])
    assert [row.tolist() for row in rows] == [[1, 2, 0], [0, 3, 1]]


def test_saved_processors_come_back(tmp_path: Path) -> None:
    processor = learn.VocabularyProcessor(4, min_frequency=1)
    processor.fit(["to be or not to be"])
    processor.save(str(tmp_path / "processor"))
    for path in (tmp_path / "processor", GOLDEN / "vocabulary_processor.pickle"):
        restored = learn.VocabularyProcessor.restore(str(path))
        assert isinstance(restored, learn.VocabularyProcessor)
        rows = restored.transform(["be good to be or not"])
        assert [row.tolist() for row in rows] == (
            [[1, 0, 2, 1]] if "golden" not in str(path) else [[2, 0, 1, 2]]
        )


def test_categorical_vocabulary() -> None:
    vocabulary = learn.CategoricalVocabulary()
    assert [vocabulary.get(each) for each in ["a", "b", "a", "<UNK>"]] == [1, 2, 1, 0]
    vocabulary.freeze()
    assert vocabulary.get("new") == 0
    vocabulary.freeze(False)
    assert vocabulary.get("new") == 3
    assert [vocabulary.reverse(each) for each in range(3)] == ["<UNK>", "a", "b"]
    with pytest.raises(IndexError):
        vocabulary.reverse(9)
    with pytest.raises(ValueError, match="support_reverse"):
        learn.CategoricalVocabulary(support_reverse=False).reverse(1)


def test_trimming_keeps_counts_between_two_numbers() -> None:
    vocabulary = learn.CategoricalVocabulary()
    for category, count in [("a", 5), ("c", 2), ("b", 2), ("d", 9), ("e", 1)]:
        vocabulary.add(category, count)
    vocabulary.trim(1, 5)
    assert [vocabulary.reverse(each) for each in range(len(vocabulary))] == ["<UNK>", "b", "c"]


def test_byte_processor() -> None:
    processor = learn.ByteProcessor(5)
    rows = list(processor.fit_transform(["abc", "übermut", b"xy"]))
    assert [row.tolist() for row in rows] == [
        [97, 98, 99, 0, 0],
        [195, 188, 98, 101, 114],
        [120, 121, 0, 0, 0],
    ]
    assert rows[0].dtype == np.uint8
    found = processor.reverse([np.array([97, 98, 0, 0]), np.array([0, 97, 0]), np.array([98, 200, 0])])
    assert list(found) == ["ab", "\0a", ""]


def test_categorical_processor() -> None:
    rows = [["a", "x"], ["b", "y"], ["a", "z"]]
    processor = learn.CategoricalProcessor()
    assert [row.tolist() for row in processor.fit_transform(rows)] == [[1, 1], [2, 2], [1, 3]]
    assert [row.tolist() for row in processor.transform([["c", "x"], ["b", float("nan")]])] == [
        [0, 1],
        [2, 0],
    ]
    shared = learn.CategoricalProcessor(min_frequency=1, share=True)
    assert [row.tolist() for row in shared.fit_transform(rows)] == [[1, 0], [0, 0], [1, 0]]
    with pytest.raises(TypeError):
        list(learn.CategoricalProcessor().transform(rows))
    assert learn.setup_processor_data_feeder(rows) is rows
