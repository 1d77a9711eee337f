"""`tf.contrib.crf`: linear-chain conditional random fields (Lafferty et al. 2001)."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.crf.crf": "CrfForwardRnnCell crf_binary_score crf_log_likelihood crf_log_norm"
        " crf_multitag_sequence_score crf_sequence_score crf_unary_score",
        "flowstone.contrib.crf.decoding": "CrfDecodeBackwardRnnCell CrfDecodeForwardRnnCell crf_decode"
        " viterbi_decode",
    },
)
