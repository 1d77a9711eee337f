"""Checkpoints: named tensors in files, in TensorFlow's two formats, as NumPy arrays.

bundle_reader, bundle_writer   V2: an index and shards of data
v1_files                       V1: a table of messages
checkpoints                    either, by what is there
slices                         rectangular parts of tensors
tables, encodings, snappy      the sorted tables that both formats use
values                         values as bytes
"""
