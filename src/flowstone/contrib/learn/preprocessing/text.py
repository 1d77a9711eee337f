"""Texts as ids of words, or as bytes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import numpy as np

import flowstone as tf
from flowstone.contrib.learn.preprocessing.categorical_vocabulary import CategoricalVocabulary

__all__ = ["TOKENIZER_RE", "ByteProcessor", "VocabularyProcessor", "tokenizer"]

TOKENIZER_RE = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)
_TENSORFLOW = "tensorflow.contrib.learn.python.learn.preprocessing"


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """Gives the words of each text: letters, digits, ``'``, ``_`` and ``-``; words in camel case are cut."""
    for text in iterator:
        yield TOKENIZER_RE.findall(text)


class ByteProcessor:
    """Maps texts to the bytes of their UTF-8.

    Args:
        max_document_length: longer ones are cut, shorter ones filled with 0.
    """

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Iterable[Any]) -> None:
        """Does nothing."""

    def fit_transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """The same as `transform`."""
        self.fit(x)
        return self.transform(x)

    def reverse(self, x: Iterable[Any]) -> Iterator[str]:
        """Gives the text of each row of bytes, without the zeros at its end; '' for what is not UTF-8."""
        for row in x:
            data = np.asarray(row).astype(np.uint8).tobytes().rstrip(b"\0")
            try:
                yield data.decode("utf-8")
            except UnicodeDecodeError:
                yield ""

    def transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """Gives the bytes of each text: uint8, [max_document_length]."""
        for text in x:
            found = text.encode("utf-8") if isinstance(text, str) else bytes(text)
            row = np.zeros(self.max_document_length, np.uint8)
            known = np.frombuffer(found[: self.max_document_length], np.uint8)
            row[: len(known)] = known
            yield row


class VocabularyProcessor:
    """Maps texts to the ids of their words; 0 is that of unknown words, and fills short texts.

    Args:
        max_document_length: how many words of a text count.
        min_frequency: words that are not more frequent in `fit` are unknown, if it is not 0.
        vocabulary: a `CategoricalVocabulary`; None for a new one.
        tokenizer_fn: a function from an iterable of texts to one of their words; None: `tokenizer`.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[Any]], Iterable[Iterable[Any]]] | None = None,
    ) -> None:
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[Any], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of the texts, and freezes the vocabulary."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Iterable[Any], unused_y: Any = None) -> Iterator[Any]:
        """`fit`, then `transform`."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[Any]) -> Iterator[Any]:
        """Gives the ids of each text's words: int64, [max_document_length]."""
        for words in self._tokenizer(raw_documents):
            ids = np.zeros(self.max_document_length, np.int64)
            for place, word in enumerate(words):
                if place >= self.max_document_length:
                    break
                ids[place] = self.vocabulary_.get(word)
            yield ids

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """Gives the words of each row of ids, with spaces between them. IndexError for ids of no word."""
        for ids in documents:
            yield " ".join(self.vocabulary_.reverse(each) for each in ids)

    def save(self, filename: str) -> None:
        """Writes the processor to a file, as a pickle."""
        with tf.gfile.Open(filename, "wb") as file:
            file.write(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: str) -> Any:
        """The processor of a file that `save`, here or in TensorFlow, has written.

        A pickle may run code: read none from strangers.
        """
        with tf.gfile.Open(filename, "rb") as file:
            return _Unpickler(file).load()


class _Unpickler(pickle.Unpickler):
    """Finds the classes of this room under TensorFlow's names, too."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, encoding="utf-8")  # of Python 2

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name.startswith(_TENSORFLOW):
            module_name = __package__ + module_name.removeprefix(_TENSORFLOW)
        return super().find_class(module_name, global_name)
