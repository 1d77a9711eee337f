from flowstone.io.proto import decision_trees_pb2 as _decision_trees_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FertileStats(_message.Message):
    __slots__ = ("node_to_slot",)
    NODE_TO_SLOT_FIELD_NUMBER: _ClassVar[int]
    node_to_slot: _containers.RepeatedCompositeFieldContainer[FertileSlot]
    def __init__(self, node_to_slot: _Optional[_Iterable[_Union[FertileSlot, _Mapping]]] = ...) -> None: ...

class GiniStats(_message.Message):
    __slots__ = ("square",)
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    square: float
    def __init__(self, square: _Optional[float] = ...) -> None: ...

class LeafStat(_message.Message):
    __slots__ = ("weight_sum", "classification", "regression")
    class GiniImpurityClassificationStats(_message.Message):
        __slots__ = ("dense_counts", "sparse_counts", "gini")
        DENSE_COUNTS_FIELD_NUMBER: _ClassVar[int]
        SPARSE_COUNTS_FIELD_NUMBER: _ClassVar[int]
        GINI_FIELD_NUMBER: _ClassVar[int]
        dense_counts: _decision_trees_pb2.Vector
        sparse_counts: _decision_trees_pb2.SparseVector
        gini: GiniStats
        def __init__(self, dense_counts: _Optional[_Union[_decision_trees_pb2.Vector, _Mapping]] = ..., sparse_counts: _Optional[_Union[_decision_trees_pb2.SparseVector, _Mapping]] = ..., gini: _Optional[_Union[GiniStats, _Mapping]] = ...) -> None: ...
    class LeastSquaresRegressionStats(_message.Message):
        __slots__ = ("mean_output", "mean_output_squares")
        MEAN_OUTPUT_FIELD_NUMBER: _ClassVar[int]
        MEAN_OUTPUT_SQUARES_FIELD_NUMBER: _ClassVar[int]
        mean_output: _decision_trees_pb2.Vector
        mean_output_squares: _decision_trees_pb2.Vector
        def __init__(self, mean_output: _Optional[_Union[_decision_trees_pb2.Vector, _Mapping]] = ..., mean_output_squares: _Optional[_Union[_decision_trees_pb2.Vector, _Mapping]] = ...) -> None: ...
    WEIGHT_SUM_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATION_FIELD_NUMBER: _ClassVar[int]
    REGRESSION_FIELD_NUMBER: _ClassVar[int]
    weight_sum: float
    classification: LeafStat.GiniImpurityClassificationStats
    regression: LeafStat.LeastSquaresRegressionStats
    def __init__(self, weight_sum: _Optional[float] = ..., classification: _Optional[_Union[LeafStat.GiniImpurityClassificationStats, _Mapping]] = ..., regression: _Optional[_Union[LeafStat.LeastSquaresRegressionStats, _Mapping]] = ...) -> None: ...

class FertileSlot(_message.Message):
    __slots__ = ("leaf_stats", "candidates", "post_init_leaf_stats", "node_id", "depth")
    LEAF_STATS_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    POST_INIT_LEAF_STATS_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    leaf_stats: LeafStat
    candidates: _containers.RepeatedCompositeFieldContainer[SplitCandidate]
    post_init_leaf_stats: LeafStat
    node_id: int
    depth: int
    def __init__(self, leaf_stats: _Optional[_Union[LeafStat, _Mapping]] = ..., candidates: _Optional[_Iterable[_Union[SplitCandidate, _Mapping]]] = ..., post_init_leaf_stats: _Optional[_Union[LeafStat, _Mapping]] = ..., node_id: _Optional[int] = ..., depth: _Optional[int] = ...) -> None: ...

class SplitCandidate(_message.Message):
    __slots__ = ("split", "left_stats", "right_stats", "unique_id")
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    LEFT_STATS_FIELD_NUMBER: _ClassVar[int]
    RIGHT_STATS_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_ID_FIELD_NUMBER: _ClassVar[int]
    split: _decision_trees_pb2.BinaryNode
    left_stats: LeafStat
    right_stats: LeafStat
    unique_id: str
    def __init__(self, split: _Optional[_Union[_decision_trees_pb2.BinaryNode, _Mapping]] = ..., left_stats: _Optional[_Union[LeafStat, _Mapping]] = ..., right_stats: _Optional[_Union[LeafStat, _Mapping]] = ..., unique_id: _Optional[str] = ...) -> None: ...

class TreePath(_message.Message):
    __slots__ = ("nodes_visited",)
    NODES_VISITED_FIELD_NUMBER: _ClassVar[int]
    nodes_visited: _containers.RepeatedCompositeFieldContainer[_decision_trees_pb2.TreeNode]
    def __init__(self, nodes_visited: _Optional[_Iterable[_Union[_decision_trees_pb2.TreeNode, _Mapping]]] = ...) -> None: ...
