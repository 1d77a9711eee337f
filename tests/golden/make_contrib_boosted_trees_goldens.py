"""Ask TensorFlow 1.15 what the programs of `tests/contrib/boosted_trees/tree_programs.py` find.

Run with a Python that has TensorFlow 1.15 and its contrib (the file came from 1.15.5):
`python tests/golden/make_contrib_boosted_trees_goldens.py`. It writes `contrib/boosted_trees.json`. The
package of 1.15 has the operations and no module of its messages: their descriptors are read from the library
of the operations.
"""

import json
import os
import pathlib
import sys
import types

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "contrib" / "boosted_trees"))

import numpy as np
import tensorflow as tf
import tree_programs
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.contrib.boosted_trees.python import ops as package
from tensorflow.contrib.boosted_trees.python.ops import boosted_trees_ops_loader  # noqa: F401
from tensorflow.python.framework import op_def_library, op_def_registry

FOLDER = pathlib.Path(__file__).parent / "contrib"
NAMES = ("tree_config", "split_info", "learner", "quantiles")
_FIELDS = (1, 2, 3, 4, 5, 8, 12)  # of a FileDescriptorProto, in order; the last is its syntax


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _descriptor(data, name):
    """The FileDescriptorProto that the library has of a .proto file."""
    path = f"tensorflow/contrib/boosted_trees/proto/{name}.proto".encode()
    start = data.find(b"\n" + bytes([len(path)]) + path)
    at, last = start, 0
    while last != _FIELDS[-1]:
        tag, at = _varint(data, at)
        assert tag & 7 == 2 and tag >> 3 in _FIELDS
        size, at = _varint(data, at)
        at, last = at + size, tag >> 3
    return descriptor_pb2.FileDescriptorProto.FromString(data[start:at])


def messages():
    """The classes of the messages, by name."""
    library = pathlib.Path(package.__file__).with_name("_boosted_trees_ops.so").read_bytes()
    pool, found = descriptor_pool.DescriptorPool(), {}
    for name in NAMES:
        descriptor = _descriptor(library, name)
        pool.Add(descriptor)
        for kind in pool.FindFileByName(descriptor.name).message_types_by_name.values():
            found[kind.name] = message_factory.MessageFactory(pool).GetPrototype(kind)
    return types.SimpleNamespace(**found)


def _library():
    library = op_def_library.OpDefLibrary()
    for definition in op_def_registry.get_registered_ops().values():
        library.add_op(definition)
    return library


def plain(value):
    """A value as JSON has it: texts of messages are hexadecimal."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    return value


def main():
    """Writes what every program found."""
    library, found = _library(), {}
    for name, program in tree_programs.programs(messages()).items():
        with tf.Graph().as_default(), tf.Session() as session:
            found[name] = plain(program(library.apply_op, session.run))
    (FOLDER / "boosted_trees.json").write_text(json.dumps(found, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
