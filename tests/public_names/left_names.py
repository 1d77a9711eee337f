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

# Names of namespaces and members, by the file below `tests/` that calls them and compares the result.
COVERED = {
    "testing/test_local_cluster.py": "tf.train.Server tf.test.create_local_cluster",
    "testing/test_test_case.py": "tf.test.main tf.test.test_src_dir_path",
    "framework/process/test_logging.py": "tf.logging.flush",
    "ops/images/test_codec_functions.py": (
        "tf.image.decode_and_crop_jpeg tf.image.decode_bmp tf.image.decode_gif tf.image.decode_image"
        " tf.image.decode_jpeg tf.image.decode_png tf.image.encode_jpeg tf.image.encode_png"
        " tf.image.extract_jpeg_shape"
    ),
    "ops/networks/test_dual_coordinate_ascent.py": "tf.train.sdca_optimizer",
    "profiling/test_options.py": "tf.profiler.ProfileOptionBuilder",
    "profiling/test_profiler.py": (
        "tf.profiler.Profiler tf.profiler.advise tf.profiler.profile tf.profiler.write_op_log"
    ),
    "public_names/test_later_functions.py": (
        "tf.initializers.absolute_import tf.initializers.division tf.initializers.print_function"
    ),
    "training/test_cluster_spec.py": "tf.train.ClusterSpec",
    "training/test_coordinator.py": "tf.train.LooperThread.isAlive",
    "training/test_quantized_training.py": "tf.train.do_quantize_training_on_graphdef",
    "training/test_session_hooks.py": "tf.train.NanLossDuringTrainingError.message",
}

# Names that TensorFlow 1.4 has and Flowstone has not.
ABSENT: dict[str, str] = {}
