"""`tf.contrib.layers`: layers as functions with variables in scopes, initialisers, regularisers, training."""

from __future__ import annotations

from flowstone.contrib.layers.layers import FILES as _FILES
from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        **{
            f"flowstone.contrib.layers.{file}": " ".join(n for n in names.split() if n[0] != "_")
            for file, names in _FILES.items()
        },
        "flowstone.contrib.layers.embedding_ops": "embedding_lookup_unique safe_embedding_lookup_sparse",
        "flowstone.contrib.layers.encoders": "bow_encoder embed_sequence",
        "flowstone.contrib.layers.initializers": "variance_scaling_initializer xavier_initializer"
        " xavier_initializer_conv2d",
        "flowstone.contrib.layers.normalization": "group_norm instance_norm layer_norm",
        "flowstone.contrib.layers.optimizers": "OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES optimize_loss",
        "flowstone.contrib.layers.summaries": "summarize_activation summarize_activations"
        " summarize_collection summarize_tensor summarize_tensors",
        "flowstone.contrib.layers.regularizers": "apply_regularization l1_l2_regularizer l1_regularizer"
        " l2_regularizer sum_regularizer",
    },
    "summaries",
)
