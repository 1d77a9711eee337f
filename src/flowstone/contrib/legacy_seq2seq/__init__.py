"""`tf.contrib.legacy_seq2seq`: sequence-to-sequence models over lists of inputs, `tf.nn.seq2seq` of
TensorFlow 0.x.

Inputs and outputs are lists with a tensor [batch, …] for each time step. `model_with_buckets` makes one
model for each of several lengths.
"""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.legacy_seq2seq.attention": "attention_decoder embedding_attention_decoder"
        " embedding_attention_seq2seq",
        "flowstone.contrib.legacy_seq2seq.losses": "model_with_buckets sequence_loss"
        " sequence_loss_by_example",
        "flowstone.contrib.legacy_seq2seq.seq2seq": "basic_rnn_seq2seq embedding_rnn_decoder"
        " embedding_rnn_seq2seq embedding_tied_rnn_seq2seq one2many_rnn_seq2seq rnn_decoder tied_rnn_seq2seq",
    },
)
