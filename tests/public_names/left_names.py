"""Public names of `tf` and its namespaces that no table calls, by what covers them."""

LEFT = {
    "a namespace, whose names are walked as its own": (
        "app bitwise compat contrib data distributions errors estimator feature_column flags gfile graph_util"
        " image initializers keras layers linalg logging losses metrics nn profiler python_io"
        " pywrap_tensorflow resource_loader saved_model sets spectral summary sysconfig test train user_ops"
    ),
    "reads records or files, and is compared with files that TensorFlow has written": (
        "FixedLenFeature FixedLenSequenceFeature FixedLengthRecordReader IdentityReader LMDBReader ReaderBase"
        " SparseFeature TFRecordReader TextLineReader VarLenFeature WholeFileReader decode_csv"
        " decode_json_example decode_raw matching_files parse_example parse_single_example"
        " parse_single_sequence_example parse_tensor read_file serialize_tensor write_file"
    ),
}

# Names of namespaces, by the file below `tests/` that calls them and compares the result.
COVERED = {
    "testing/test_test_case.py": "tf.test.main",
    "framework/test_logging.py": "tf.logging.flush",
}

# Names that TensorFlow 1.4 has and Flowstone has not; `isAlive` and `message` went with Python 2.
ABSENT = {
    "tf.image": (
        "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg"
        " encode_png extract_jpeg_shape"
    ),
    "tf.initializers": "absolute_import division print_function",
    "tf.profiler": "ProfileOptionBuilder Profiler advise profile write_op_log",
    "tf.resource_loader": (
        "get_data_files_path get_path_to_datafile get_root_dir_with_all_resources load_resource"
        " readahead_file_path"
    ),
    "tf.sysconfig": "get_include get_lib",
    "tf.test": "create_local_cluster",
    "tf.train.LooperThread": "isAlive",
    "tf.train.NanLossDuringTrainingError": "message",
    "tf.train": (
        "ClusterSpec Server do_quantize_training_on_graphdef sdca_fprint sdca_optimizer sdca_shrink_l1"
    ),
}
