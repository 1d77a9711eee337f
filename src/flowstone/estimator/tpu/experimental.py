"""`tf.estimator.tpu.experimental`: what only a TPU has."""

from __future__ import annotations

from flowstone.framework.names.refusals import refused_class

__all__ = ["EmbeddingConfigSpec"]

EmbeddingConfigSpec = refused_class(
    "tf.estimator.tpu.experimental.EmbeddingConfigSpec",
    "tf.feature_column.embedding_column, whose table is a variable of the model",
)
