from flowstone.io.proto import tree_config_pb2 as _tree_config_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SplitInfo(_message.Message):
    __slots__ = ("split_node", "left_child", "right_child")
    SPLIT_NODE_FIELD_NUMBER: _ClassVar[int]
    LEFT_CHILD_FIELD_NUMBER: _ClassVar[int]
    RIGHT_CHILD_FIELD_NUMBER: _ClassVar[int]
    split_node: _tree_config_pb2.TreeNode
    left_child: _tree_config_pb2.Leaf
    right_child: _tree_config_pb2.Leaf
    def __init__(self, split_node: _Optional[_Union[_tree_config_pb2.TreeNode, _Mapping]] = ..., left_child: _Optional[_Union[_tree_config_pb2.Leaf, _Mapping]] = ..., right_child: _Optional[_Union[_tree_config_pb2.Leaf, _Mapping]] = ...) -> None: ...

class ObliviousSplitInfo(_message.Message):
    __slots__ = ("split_node", "children", "children_parent_id")
    SPLIT_NODE_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    split_node: _tree_config_pb2.TreeNode
    children: _containers.RepeatedCompositeFieldContainer[_tree_config_pb2.Leaf]
    children_parent_id: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, split_node: _Optional[_Union[_tree_config_pb2.TreeNode, _Mapping]] = ..., children: _Optional[_Iterable[_Union[_tree_config_pb2.Leaf, _Mapping]]] = ..., children_parent_id: _Optional[_Iterable[int]] = ...) -> None: ...
