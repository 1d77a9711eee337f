"""TensorFlow's messages that the package tensorboard lacks, with TensorFlow's names, numbers and types.

Each reads what the other wrote, bytes and text: neither form names a message. The `.proto` texts are the
source; `tests/golden/make_proto_modules.py` compiles them with a protoc of protobuf 4.25, whose code every
later release of protobuf takes. Fields of common messages (MetaGraphDef, TensorProto …) have the classes of
tensorboard.

The messages are in the package ``flowstone`` of protobuf's own descriptor pool. A pool of our own would keep
them from holding tensorboard's, which are in protobuf's; the package ``tensorflow`` would clash in a process
that also loads TensorFlow, ``tensorboard`` with a release of tensorboard that has them. The one place where a
full name is written, a message inside an `Any`, is `any_messages`.
"""
