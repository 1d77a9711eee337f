"""Skip-gram sampling: words paired with words near them, of which rare ones are left out and frequent ones
thinned (T. Mikolov et al., Distributed Representations of Words and Phrases, 2013).
"""

from __future__ import annotations

import csv
from typing import Any

import flowstone as tf
from flowstone.ops.networks.skip_grams import skip_gram_candidates_op
from flowstone.ops.randomness.op_seeds import seed_attributes

__all__ = ["skip_gram_sample", "skip_gram_sample_with_text_vocab"]

_CAPACITY = 100  # batches that the queue holds


def skip_gram_sample(
    input_tensor: Any,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    vocab_freq_table: Any = None,
    vocab_min_count: Any = None,
    vocab_subsampling: float | None = None,
    corpus_size: Any = None,
    batch_size: int | None = None,
    batch_capacity: int | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Pairs each word with those in a window around it, whose size is drawn for each word.

    Args:
        input_tensor: the words, a vector of any type.
        min_skips, max_skips: between which the size is drawn, both included.
        start, limit: where the part of the text begins, and how many words it has; -1 for all that follow.
        emit_self_as_target: whether a word is also paired with itself.
        vocab_freq_table: a lookup table from words to their counts. Words that it lacks are left out.
        vocab_min_count: words of smaller counts are left out.
        vocab_subsampling: the part of the corpus above which words are thinned.
        corpus_size: the number of words that the counts are counts of.
        batch_size: pairs come in batches of this size from a queue; by default all at once.
        batch_capacity: of that queue; by default 100 batches.
        seed: of windows and thinning.
        name: the scope.

    Returns two vectors of the words' type: tokens and labels.
    Raises ValueError where counts are used without a table, or only one of `vocab_subsampling` and
    `corpus_size` is given.
    """
    if vocab_freq_table is None and not (vocab_min_count is vocab_subsampling is corpus_size is None):
        raise ValueError(
            f"vocab_freq_table is not provided, but vocab_min_count={vocab_min_count}, "
            f"vocab_subsampling={vocab_subsampling}, or corpus_size={corpus_size} is not None. "
            "These settings are useless without a vocab_freq_table."
        )
    if (vocab_subsampling is None) != (corpus_size is None):
        raise ValueError(
            f"vocab_subsampling is {vocab_subsampling} while corpus_size is {corpus_size} - both must be "
            "provided in order for subsampling to work."
        )
    with tf.name_scope(name, "skip_gram_sample", [input_tensor]):
        words = _frequent(
            input_tensor, vocab_freq_table, vocab_min_count, vocab_subsampling, corpus_size, seed
        )
        pairs = skip_gram_candidates_op.several(
            words, min_skips, max_skips, start, limit, emit_self_as_target, **seed_attributes(seed)
        )
        tokens, labels = pairs
        if batch_size is None:
            return tokens, labels
        capacity = _CAPACITY * batch_size if batch_capacity is None else batch_capacity
        return tf.train.batch([tokens, labels], batch_size, capacity=capacity, enqueue_many=True)


def skip_gram_sample_with_text_vocab(
    input_tensor: Any,
    vocab_freq_file: str,
    vocab_token_index: int = 0,
    vocab_token_dtype: Any = tf.string,
    vocab_freq_index: int = 1,
    vocab_freq_dtype: Any = tf.float64,
    vocab_delimiter: str = ",",
    vocab_min_count: Any = 0,
    vocab_subsampling: float | None = None,
    corpus_size: Any = None,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    batch_size: int | None = None,
    batch_capacity: int | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """`skip_gram_sample` with the counts of a text file, a line of columns for each word.

    Args:
        vocab_freq_file: the file.
        vocab_token_index, vocab_freq_index: the columns of words and of their counts.
        vocab_token_dtype, vocab_freq_dtype: their types.
        vocab_delimiter: what stands between columns.
        corpus_size: by default the sum of the counts, which is the least.

    The other arguments are those of `skip_gram_sample`.
    Raises ValueError for columns that the file lacks or that are the same one, for a negative count and for a
    `corpus_size` that is too small.
    """
    columns = vocab_token_index, vocab_freq_index
    total = _sum_of_counts(vocab_freq_file, columns, tf.as_dtype(vocab_freq_dtype), vocab_delimiter)
    if vocab_subsampling is None:
        corpus_size = None
    elif corpus_size is None:
        corpus_size = total
    elif corpus_size < total:
        raise ValueError(
            f"`corpus_size`={corpus_size} must be greater than or equal to the sum of all the "
            f"frequency counts ({total}) of `vocab_freq_file` ({vocab_freq_file})."
        )
    table = tf.contrib.lookup.HashTable(
        tf.contrib.lookup.TextFileInitializer(
            vocab_freq_file,
            vocab_token_dtype,
            vocab_token_index,
            vocab_freq_dtype,
            vocab_freq_index,
            delimiter=vocab_delimiter,
        ),
        # A count that no word of the file has.
        tf.constant(-1, dtype=vocab_freq_dtype),
    )
    return skip_gram_sample(
        input_tensor,
        min_skips,
        max_skips,
        start,
        limit,
        emit_self_as_target,
        table,
        vocab_min_count,
        vocab_subsampling,
        corpus_size,
        batch_size,
        batch_capacity,
        seed,
        name,
    )


def _sum_of_counts(path: str, columns: tuple[int, int], dtype: Any, delimiter: str) -> Any:
    """The sum of a file's counts. ValueError for columns or counts that cannot be."""
    token, count = columns
    if token < 0 or count < 0:
        raise ValueError(f"vocab_token_index={token} and vocab_freq_index={count} must both be >= 0.")
    if token == count:
        raise ValueError(f"vocab_token_index and vocab_freq_index should be different, but are both {token}.")
    number = int if dtype.is_integer else float
    total = number(0)
    with tf.gfile.GFile(path) as file:
        for row in csv.reader(file, delimiter=delimiter):
            if max(columns) >= len(row):
                raise ValueError(
                    f"Row in vocab file only has {len(row)} columns, so vocab_token_index={token} or "
                    f"vocab_freq_index={count} is out of bounds. Row content: {row}"
                )
            found = number(row[count])
            if found < 0:
                raise ValueError(f"Row in vocab file has negative frequency of {found}. Row content: {row}")
            total += found
    return total


def _frequent(words: Any, table: Any, least: Any, share: Any, corpus_size: Any, seed: int | None) -> Any:
    """The words that the table has often enough, those thinned that it has more often than `share`."""
    words = tf.convert_to_tensor(words)
    if table is None:
        return words
    with tf.name_scope("filter_vocab", values=[words]):
        counts = table.lookup(words)
        kept = tf.not_equal(counts, table.default_value)
        if least is not None:
            kept = tf.logical_and(kept, tf.greater_equal(counts, tf.cast(least, counts.dtype)))
        words, counts = tf.boolean_mask(words, kept), tf.boolean_mask(counts, kept)
    if share is None:
        return words
    with tf.name_scope("subsample_vocab", values=[words]):
        size = tf.cast(corpus_size, tf.float64)
        counts = tf.cast(counts, tf.float64)
        wanted = tf.cast(share, tf.float64) * size
        chance = (tf.sqrt(counts / wanted) + 1.0) * (wanted / counts)
        drawn = tf.random_uniform(tf.shape(counts), dtype=tf.float64, seed=seed)
        return tf.boolean_mask(words, tf.less_equal(drawn, chance))
