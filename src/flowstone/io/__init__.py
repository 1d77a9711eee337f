"""Byte formats without graph: files of any store, records, events, checkpoints, TensorFlow's messages.

    file_system        paths of any store, TensorFlow's errors, files that appear whole or not at all
    records            TFRecord files
    examples           arrays as serialised Examples
    image_files        PNG, JPEG, GIF, BMP and WebP files
    events             event files, which TensorBoard reads
    checkpoint_files   checkpoints of both formats
    proto              the messages that the package tensorboard lacks

Nothing here knows tensors or graphs: values are bytes and NumPy arrays. What is damaged raises
`DataLossError` with file and place.
"""

from flowstone.framework.names.late_names import late_names as _late_names

# What programs call `tf.io`. The names come from above this room, when a program asks for them.
__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.framework.names.refused_names": "RaggedFeature decode_proto encode_proto",
        "flowstone.image": "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png"
        " decode_webp encode_jpeg encode_png extract_jpeg_shape is_jpeg",
        "flowstone.io.records": "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
        "flowstone.ops.parsing.csv_records": "decode_csv",
        "flowstone.ops.parsing.features": "FixedLenFeature FixedLenSequenceFeature SparseFeature"
        " VarLenFeature parse_example parse_sequence_example parse_single_example"
        " parse_single_sequence_example",
        "flowstone.ops.parsing.messages": "decode_json_example parse_tensor serialize_tensor",
        "flowstone.ops.parsing.raw_bytes": "decode_compressed decode_raw",
        "flowstone.ops.queues.queues": "PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
        "flowstone.ops.readers.file_contents": "read_file write_file",
        "flowstone.ops.readers.files": "matching_files",
        "flowstone.ops.sparse.sparse_conversions": "deserialize_many_sparse serialize_many_sparse"
        " serialize_sparse",
        "flowstone.ops.strings.base64_text": "decode_base64 encode_base64",
        "flowstone.training.input.input_pipelines": "match_filenames_once",
        "flowstone.training.checkpoints.meta_graph": "write_graph",
    },
    "gfile",
)
