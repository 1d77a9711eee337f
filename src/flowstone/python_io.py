"""`flowstone.python_io`: TFRecord files without a graph."""

from flowstone.io.records import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordWriter,
    tf_record_iterator,
)
