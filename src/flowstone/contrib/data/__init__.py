"""`tf.contrib.data`: transformations of Datasets, and the Datasets of TensorFlow 1.2 to 1.4."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.data.dataset_ops": "Dataset FixedLengthRecordDataset TFRecordDataset"
        " TextLineDataset",
        "flowstone.data.bucketing": "batch_and_drop_remainder bucket_by_sequence_length"
        " padded_batch_and_drop_remainder sliding_window_batch",
        "flowstone.data.choosing": "Counter RandomDataset assert_element_shape choose_from_datasets"
        " parallel_interleave sample_from_datasets sloppy_interleave unique",
        "flowstone.data.csv_files": "CsvDataset make_csv_dataset",
        "flowstone.data.dataset_functions": "AUTOTUNE",
        "flowstone.data.device_transfers": "copy_to_device prefetch_to_device",
        "flowstone.data.example_files": "make_batched_features_dataset parse_example_dataset"
        " read_batch_features",
        "flowstone.data.experimental": "SqlDataset dense_to_sparse_batch enumerate_dataset get_single_element"
        " group_by_window ignore_errors map_and_batch scan shuffle_and_repeat unbatch",
        "flowstone.data.iterator": "Iterator",
        "flowstone.data.iterator_checkpoints": "CheckpointInputPipelineHook make_saveable_from_iterator",
        "flowstone.data.optional": "Optional get_next_as_optional",
        "flowstone.data.reducing": "Reducer group_by_reducer reduce_dataset",
        "flowstone.data.resampling": "rejection_resample",
        "flowstone.data.refused_names": "LMDBDataset TFRecordWriter",
    },
)
