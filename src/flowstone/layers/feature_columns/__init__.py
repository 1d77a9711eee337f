"""Feature columns: how features become the numbers of a model.

`columns` says what a column is, `transformation` makes tensors of features, each once. The kinds of columns
are in `numeric`, `categorical`, `vocabulary`, `crossed`, `embedding`, `shared_embedding` and `sequence`;
`input_layers` and `linear_models` have the layers in variable scopes. The names are those of
TensorFlow's module `feature_column`, with its classes of both generations.
"""
