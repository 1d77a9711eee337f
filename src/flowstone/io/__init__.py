"""Byte formats without graph: files of any store, records, events, checkpoints, TensorFlow's messages.

    file_system        paths of any store, TensorFlow's errors, files that appear whole or not at all
    records            TFRecord files
    events             event files, which TensorBoard reads
    checkpoint_files   checkpoints of both formats
    proto              the messages that the package tensorboard lacks

Nothing here knows tensors or graphs: values are bytes and NumPy arrays. What is damaged raises
`DataLossError` with file and place.
"""
