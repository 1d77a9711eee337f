"""`tf.contrib.layers`: layers as functions with variables in scopes, initialisers, regularisers, training."""

from __future__ import annotations

from flowstone.contrib.layers.layers import FILES as _FILES
from flowstone.contrib.package_names import package_names

# The key with which hashes of crossed features are mixed, unless a program has its own.
SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY = 956888297470

__getattr__, __dir__ = package_names(
    globals(),
    {
        **{
            f"flowstone.contrib.layers.{file}": " ".join(n for n in names.split() if n[0] != "_")
            for file, names in _FILES.items()
        },
        "flowstone.contrib.layers.embedding_ops": "embedding_lookup_unique safe_embedding_lookup_sparse",
        "flowstone.contrib.layers.encoders": "bow_encoder embed_sequence",
        "flowstone.contrib.layers.embedding_columns": "embedding_column scattered_embedding_column"
        " shared_embedding_columns",
        "flowstone.contrib.layers.feature_column": "create_feature_spec_for_parsing"
        " make_place_holder_tensors_for_base_features",
        "flowstone.contrib.layers.feature_column_ops": "check_feature_columns infer_real_valued_columns"
        " input_from_feature_columns joint_weighted_sum_from_feature_columns"
        " parse_feature_columns_from_examples parse_feature_columns_from_sequence_examples"
        " sequence_input_from_feature_columns transform_features weighted_sum_from_feature_columns",
        "flowstone.contrib.layers.initializers": "variance_scaling_initializer xavier_initializer"
        " xavier_initializer_conv2d",
        "flowstone.contrib.layers.normalization": "group_norm instance_norm layer_norm",
        "flowstone.contrib.layers.real_valued_columns": "bucketized_column crossed_column real_valued_column",
        "flowstone.contrib.layers.optimizers": "OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES optimize_loss",
        "flowstone.contrib.layers.summaries": "summarize_activation summarize_activations"
        " summarize_collection summarize_tensor summarize_tensors",
        "flowstone.contrib.layers.regularizers": "apply_regularization l1_l2_regularizer l1_regularizer"
        " l2_regularizer sum_regularizer",
        "flowstone.contrib.layers.rev_block_lib": "RevBlock recompute_grad rev_block",
        "flowstone.contrib.layers.sparse_columns": "one_hot_column sparse_column_with_hash_bucket"
        " sparse_column_with_integerized_feature sparse_column_with_keys sparse_column_with_vocabulary_file"
        " weighted_sparse_column",
    },
    "feature_column summaries",
)
