"""Public names of `tf` that no table of `tf` calls, by what covers them."""

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
