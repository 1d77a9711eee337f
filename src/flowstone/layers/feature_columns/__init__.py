"""Feature columns: how features become the numbers of a model.

`columns` says what a column is, `transformation` makes tensors of features, each once. The kinds of columns
are in `numeric`, `categorical`, `vocabulary`, `crossed`, `embedding`, `shared_embedding` and `sequence`;
`input_layers` and `linear_models` have the layers in variable scopes. The names are those of
TensorFlow's module `feature_column`, with its classes of both generations.
"""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names as _late_names

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.layers.feature_columns.categorical": "HashedCategoricalColumn IdentityCategoricalColumn"
        " categorical_column_with_hash_bucket categorical_column_with_identity"
        " _HashedCategoricalColumn=HashedCategoricalColumn"
        " _IdentityCategoricalColumn=IdentityCategoricalColumn"
        " _categorical_column_with_hash_bucket=categorical_column_with_hash_bucket"
        " _categorical_column_with_identity=categorical_column_with_identity",
        "flowstone.layers.feature_columns.column_lists": "_transform_features _transform_features_v2"
        " is_feature_column_v2 make_parse_example_spec make_parse_example_spec_v2",
        "flowstone.layers.feature_columns.columns": "CategoricalColumn DenseColumn FeatureColumn"
        " SequenceDenseColumn _CategoricalColumn _DenseColumn _FeatureColumn _SequenceDenseColumn",
        "flowstone.layers.feature_columns.crossed": "CrossedColumn WeightedCategoricalColumn"
        " crossed_column weighted_categorical_column _CrossedColumn=CrossedColumn"
        " _WeightedCategoricalColumn=WeightedCategoricalColumn _crossed_column=crossed_column"
        " _weighted_categorical_column=weighted_categorical_column",
        "flowstone.layers.feature_columns.embedding": "EmbeddingColumn IndicatorColumn embedding_column"
        " indicator_column _EmbeddingColumn=EmbeddingColumn _IndicatorColumn=IndicatorColumn"
        " _embedding_column=embedding_column _indicator_column=indicator_column",
        "flowstone.layers.feature_columns.feature_layers": "DenseFeatures LinearModel SequenceFeatures"
        " _BaseFeaturesLayer concatenate_context_input _LinearModel=LinearModel",
        "flowstone.layers.feature_columns.input_layers": "InputLayer input_layer",
        "flowstone.layers.feature_columns.linear_models": "linear_model",
        "flowstone.layers.feature_columns.numeric": "BucketizedColumn NumericColumn bucketized_column"
        " numeric_column _NumericColumn=NumericColumn _BucketizedColumn=BucketizedColumn"
        " _numeric_column=numeric_column _bucketized_column=bucketized_column",
        "flowstone.layers.feature_columns.sequence": "SequenceCategoricalColumn SequenceNumericColumn"
        " sequence_categorical_column_with_hash_bucket sequence_categorical_column_with_identity"
        " sequence_categorical_column_with_vocabulary_file"
        " sequence_categorical_column_with_vocabulary_list sequence_numeric_column"
        " _SequenceCategoricalColumn=SequenceCategoricalColumn",
        "flowstone.layers.feature_columns.serialization": "deserialize_feature_column"
        " deserialize_feature_columns serialize_feature_column serialize_feature_columns",
        "flowstone.layers.feature_columns.shared_embedding": "_SharedEmbeddingColumn"
        " shared_embedding_columns",
        "flowstone.layers.feature_columns.state": "StateManager _StateManagerImpl",
        "flowstone.layers.feature_columns.transformation": "FeatureTransformationCache _LazyBuilder"
        " _to_sparse_input_and_drop_ignore_values",
        "flowstone.layers.feature_columns.vocabulary": "VocabularyFileCategoricalColumn"
        " VocabularyListCategoricalColumn categorical_column_with_vocabulary_file"
        " categorical_column_with_vocabulary_file_v2 categorical_column_with_vocabulary_list"
        " _VocabularyFileCategoricalColumn=VocabularyFileCategoricalColumn"
        " _VocabularyListCategoricalColumn=VocabularyListCategoricalColumn"
        " _categorical_column_with_vocabulary_file=categorical_column_with_vocabulary_file"
        " _categorical_column_with_vocabulary_list=categorical_column_with_vocabulary_list",
    },
)
