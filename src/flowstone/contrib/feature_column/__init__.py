"""`tf.contrib.feature_column`: columns of sequences, and the layer of them."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.feature_column.sequence_feature_column": "sequence_input_layer"
        " sequence_numeric_column",
        "flowstone.layers.feature_columns.sequence": "sequence_categorical_column_with_hash_bucket"
        " sequence_categorical_column_with_identity sequence_categorical_column_with_vocabulary_file"
        " sequence_categorical_column_with_vocabulary_list",
    },
)
