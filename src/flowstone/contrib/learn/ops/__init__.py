"""`tf.contrib.learn.ops`: embeddings, losses and sequences, as the first models were written with."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_OPS = "flowstone.contrib.learn.ops"

__getattr__, __dir__ = package_names(
    globals(),
    {
        f"{_OPS}.embeddings_ops": "categorical_variable embedding_lookup",
        f"{_OPS}.losses_ops": "mean_squared_error_regressor softmax_classifier",
        f"{_OPS}.seq2seq_ops": "rnn_decoder rnn_seq2seq seq2seq_inputs sequence_classifier",
    },
    "embeddings_ops losses_ops seq2seq_ops",
)
