"""`tf.contrib.seq2seq`: decoders that feed what they emit back, attention and beam search.

A `Decoder` is a step of decoding, `dynamic_decode` runs it in a loop. `BasicDecoder` takes its next inputs
from a `Helper`, `BeamSearchDecoder` keeps the best of several continuations, and `AttentionWrapper` is a
cell that reads a memory.
"""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.seq2seq.attention_mechanism": "AttentionMechanism BahdanauAttention"
        " BahdanauMonotonicAttention LuongAttention LuongMonotonicAttention",
        "flowstone.contrib.seq2seq.attention_probabilities": "hardmax monotonic_attention safe_cumprod",
        "flowstone.contrib.seq2seq.attention_wrapper": "AttentionWrapper AttentionWrapperState",
        "flowstone.contrib.seq2seq.basic_decoder": "BasicDecoder BasicDecoderOutput",
        "flowstone.contrib.seq2seq.beam_search_decoder": "BeamSearchDecoder BeamSearchDecoderOutput"
        " BeamSearchDecoderState FinalBeamSearchDecoderOutput tile_batch",
        "flowstone.contrib.seq2seq.beam_search_ops": "gather_tree",
        "flowstone.contrib.seq2seq.decoder": "Decoder dynamic_decode",
        "flowstone.contrib.seq2seq.helper": "CustomHelper GreedyEmbeddingHelper Helper InferenceHelper"
        " SampleEmbeddingHelper TrainingHelper",
        "flowstone.contrib.seq2seq.loss": "sequence_loss",
        "flowstone.contrib.seq2seq.scheduled_helpers": "ScheduledEmbeddingTrainingHelper"
        " ScheduledOutputTrainingHelper",
    },
)
