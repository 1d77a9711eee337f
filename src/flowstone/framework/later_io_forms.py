"""The names of `tf.io` and `tf.saved_model` that are refused, and what to use instead; see `refusals`."""

from __future__ import annotations

from flowstone.framework.refusals import refused_class, refused_function

__all__ = [
    "Asset",
    "CheckpointOptions",
    "RaggedFeature",
    "SaveOptions",
    "decode_proto",
    "encode_proto",
    "load_v2",
    "save",
]

_PROTO = "tf.py_func over the message's Python class"
_SAVE = "tf.saved_model.Builder or tf.saved_model.simple_save"

RaggedFeature = refused_class("tf.io.RaggedFeature", "tf.io.VarLenFeature, which gives a SparseTensor")
decode_proto = refused_function("tf.io.decode_proto", _PROTO)
encode_proto = refused_function("tf.io.encode_proto", _PROTO)
Asset = refused_class("tf.saved_model.Asset", _SAVE + ", with assets in the collection ASSET_FILEPATHS")
SaveOptions = refused_class("tf.saved_model.SaveOptions", _SAVE)
CheckpointOptions = refused_class("tf.train.CheckpointOptions", "the arguments of tf.train.Saver")
load_v2 = refused_function("tf.saved_model.load_v2", "tf.saved_model.load(session, tags, export_dir)")
save = refused_function("tf.saved_model.save", _SAVE)
