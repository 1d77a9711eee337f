"""`flowstone.feature_column`: how features become the numbers of a model."""

from flowstone.framework.names.late_names import late_names as _late_names

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.layers.feature_columns.categorical": "categorical_column_with_hash_bucket"
        " categorical_column_with_identity",
        "flowstone.layers.feature_columns.column_lists": "make_parse_example_spec",
        "flowstone.layers.feature_columns.crossed": "crossed_column weighted_categorical_column",
        "flowstone.layers.feature_columns.embedding": "embedding_column indicator_column",
        "flowstone.layers.feature_columns.input_layers": "input_layer",
        "flowstone.layers.feature_columns.linear_models": "linear_model",
        "flowstone.layers.feature_columns.numeric": "bucketized_column numeric_column",
        "flowstone.layers.feature_columns.sequence": "sequence_categorical_column_with_hash_bucket"
        " sequence_categorical_column_with_identity sequence_categorical_column_with_vocabulary_file"
        " sequence_categorical_column_with_vocabulary_list sequence_numeric_column",
        "flowstone.layers.feature_columns.shared_embedding": "shared_embedding_columns",
        "flowstone.layers.feature_columns.vocabulary": "categorical_column_with_vocabulary_file"
        " categorical_column_with_vocabulary_list",
    },
)
