"""`tf.contrib.learn.io`: arrays, data frames, generators and files of examples as inputs of a model."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_FEEDS = "flowstone.contrib.learn.learn_io"

__getattr__, __dir__ = package_names(
    globals(),
    {
        f"{_FEEDS}.dask_io": "HAS_DASK extract_dask_data extract_dask_labels",
        f"{_FEEDS}.data_feeder": "setup_predict_data_feeder setup_processor_data_feeder"
        " setup_train_data_feeder",
        f"{_FEEDS}.generator_io": "generator_input_fn",
        f"{_FEEDS}.graph_io": "queue_parsed_features read_batch_examples read_batch_features"
        " read_batch_record_features read_keyed_batch_examples read_keyed_batch_examples_shared_queue"
        " read_keyed_batch_features read_keyed_batch_features_shared_queue",
        f"{_FEEDS}.numpy_io": "numpy_input_fn",
        f"{_FEEDS}.pandas_io": "HAS_PANDAS extract_pandas_data extract_pandas_labels extract_pandas_matrix"
        " pandas_input_fn",
    },
    "dask_io data_feeder generator_io graph_io numpy_io pandas_io",
)
