"""A tree of a forest: inner nodes that test one feature, and leaves with counts of classes or means.

Nodes are numbered as they were made; the root is 0, and a node's children follow each other. Serialized, a
tree is TensorFlow's message `decision_trees.Model`.

>>> tree = DecisionTree(outputs=2, sparse_leaves=False)
>>> tree.split(0, Test(feature=3, kind=0, threshold=1.5), [1.0, 0.0], [0.0, 2.0])
(1, 2)
>>> tree.is_leaf(0), tree.is_leaf(2), tree.size, tree.leaf_values([1, 2]).tolist()
(False, True, 3, [[1.0, 0.0], [0.0, 2.0]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.forest_examples import Examples

__all__ = ["EQUAL", "DecisionTree", "Test", "read_test", "set_vector", "test_message"]

Array = np.ndarray[Any, Any]
LESS_OR_EQUAL, LESS, GREATER_OR_EQUAL, GREATER, EQUAL = range(5)
_COMPARE = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal)
_MATCHING = "type.googleapis.com/tensorflow.decision_trees.MatchingValuesTest"


class Test(NamedTuple):
    """Whether an example goes to the left: its feature compares so with the threshold. No NaN does."""

    feature: int
    kind: int
    threshold: float

    def passes(self, values: Array) -> Array:
        """bool, of each value of the feature."""
        return np.asarray(_COMPARE[self.kind](values, np.float32(self.threshold)))


def _messages() -> Any:
    from flowstone.io.proto import decision_trees_pb2

    return decision_trees_pb2


def set_vector(vector: Any, values: Sequence[float]) -> None:
    """Fills the message Vector."""
    for value in values:
        vector.value.add().float_value = value


def _number(value: Any) -> float:
    kind = value.WhichOneof("value")
    return 0.0 if kind is None else float(getattr(value, kind))


def test_message(test: Test, node: Any) -> None:
    """Writes the test into the message BinaryNode."""
    if test.kind == EQUAL:
        matching = _messages().MatchingValuesTest()
        matching.feature_id.id.value = str(test.feature)
        matching.value.add().float_value = test.threshold
        node.custom_left_child_test.type_url = _MATCHING
        node.custom_left_child_test.value = matching.SerializeToString()
    else:
        inequality = node.inequality_left_child_test
        inequality.feature_id.id.value = str(test.feature)
        inequality.type = test.kind
        inequality.threshold.float_value = test.threshold


def read_test(node: Any) -> Test:
    """The test of a message BinaryNode; InvalidArgumentError for one that forests do not make."""
    kind = node.WhichOneof("left_child_test")
    if kind == "inequality_left_child_test" and node.inequality_left_child_test.HasField("feature_id"):
        inequality = node.inequality_left_child_test
        feature = int(inequality.feature_id.id.value or "0")
        return Test(feature, inequality.type, _number(inequality.threshold))
    if kind == "custom_left_child_test" and node.custom_left_child_test.type_url == _MATCHING:
        matching = _messages().MatchingValuesTest.FromString(node.custom_left_child_test.value)
        if len(matching.value) == 1 and not matching.inverse:
            return Test(int(matching.feature_id.id.value or "0"), EQUAL, _number(matching.value[0]))
    raise invalid(f"a node of the tree has a test that forests do not make: {kind}")


class DecisionTree:
    """A tree that is one leaf at first; `outputs` is the length of a leaf's values."""

    def __init__(self, outputs: int, sparse_leaves: bool) -> None:
        self._outputs = outputs
        self._sparse_leaves = sparse_leaves
        self._values: list[Array] = [np.zeros(outputs, np.float32)]
        self._tests: list[Test | None] = [None]
        self._left: list[int] = [-1]

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self._tests)

    def is_leaf(self, node: int) -> bool:
        """Whether the node has no children."""
        return self._tests[node] is None

    def split(self, node: int, test: Test, left: Sequence[float], right: Sequence[float]) -> tuple[int, int]:
        """Makes a leaf an inner node; the numbers of its children, whose values these are."""
        first = self.size
        self._tests[node], self._left[node] = test, first
        for values in (left, right):
            self._tests.append(None)
            self._left.append(-1)
            self._values.append(np.array(values, np.float32))
        return first, first + 1

    def add_to_leaves(self, leaves: Array, values: Array) -> None:
        """Adds `values` [examples, outputs] to the leaves of the examples."""
        for leaf in np.unique(leaves).tolist():
            self._check(leaf)
            self._values[leaf] = self._values[leaf] + values[leaves == leaf].sum(0)

    def _check(self, leaf: int) -> None:
        if not 0 <= leaf < self.size:
            raise invalid(f"leaf {leaf} is not a node of the tree, which has {self.size}")

    def leaf_values(self, leaves: Sequence[int] | Array) -> Array:
        """float32 [leaves, outputs]."""
        values = np.stack(self._values)
        return np.asarray(values[np.asarray(leaves, np.int64)])

    def find_leaves(self, examples: Examples) -> Array:
        """The leaf that each example comes to: int32 [examples]."""
        found = np.zeros(len(examples), np.int32)
        waiting = [(0, np.arange(len(examples)))]
        while waiting:
            node, rows = waiting.pop()
            test = self._tests[node]
            if test is None:
                found[rows] = node
                continue
            left = test.passes(examples.column(test.feature, rows))
            for child, part in ((self._left[node], rows[left]), (self._left[node] + 1, rows[~left])):
                if len(part):
                    waiting.append((child, part))
        return found

    def feature_counts(self, features: int) -> Array:
        """How many nodes test each feature: int32 [features]."""
        counts = np.zeros(features, np.int32)
        for test in self._tests:
            if test is not None:
                if test.feature >= features:
                    raise invalid(f"the tree tests feature {test.feature}, but there are {features}")
                counts[test.feature] += 1
        return counts

    # ---- messages

    def path_message(self, leaf: int) -> bytes:
        """The nodes from the root to the leaf, as a serialized message TreePath."""
        from flowstone.io.proto import fertile_stats_pb2

        inner = [(node, left) for node, left in enumerate(self._left) if left >= 0]
        parents = {child: node for node, left in inner for child in (left, left + 1)}
        path, node = [leaf], leaf
        while node:
            node = parents[node]
            path.append(node)
        message = fertile_stats_pb2.TreePath()
        for node in reversed(path):
            self._write_node(node, message.nodes_visited.add())
        return bytes(message.SerializeToString())

    def _write_node(self, node: int, message: Any) -> None:
        test = self._tests[node]
        if node:
            message.node_id.value = node
        else:
            message.node_id.SetInParent()
        if test is not None:
            message.binary_node.left_child_id.value = self._left[node]
            message.binary_node.right_child_id.value = self._left[node] + 1
            test_message(test, message.binary_node)
        elif self._sparse_leaves:
            message.leaf.sparse_vector.SetInParent()
            for at, value in enumerate(self._values[node].tolist()):
                if value:
                    message.leaf.sparse_vector.sparse_value[at].float_value = value
        else:
            set_vector(message.leaf.vector, self._values[node].tolist())

    def to_message(self) -> bytes:
        """The tree as a serialized message Model."""
        model = _messages().Model()
        for node in range(self.size):
            self._write_node(node, model.decision_tree.nodes.add())
        return bytes(model.SerializeToString())

    def read_message(self, serialized: bytes) -> None:
        """Becomes the tree of this message; InvalidArgumentError for one that is no forest's tree."""
        from google.protobuf.message import DecodeError

        try:
            model = _messages().Model.FromString(serialized)
        except DecodeError as error:
            raise invalid(f"the tree's text is no message decision_trees.Model: {error}") from error
        nodes = model.decision_tree.nodes
        tests: list[Test | None] = [None] * len(nodes)
        left, values = [-1] * len(nodes), [np.zeros(self._outputs, np.float32) for _ in nodes]
        for at, node in enumerate(nodes):
            if node.WhichOneof("node_type") == "binary_node":
                first, second = node.binary_node.left_child_id.value, node.binary_node.right_child_id.value
                if second != first + 1 or not at < first < len(nodes) - 1:
                    raise invalid(f"node {at} of the tree has the children {first} and {second}")
                tests[at], left[at] = read_test(node.binary_node), first
            else:
                values[at] = self._read_leaf(node.leaf)
        if not nodes:
            raise invalid("the tree's message has no nodes")
        self._tests, self._left, self._values = tests, left, values

    def _read_leaf(self, leaf: Any) -> Array:
        found = np.zeros(self._outputs, np.float32)
        if leaf.WhichOneof("leaf") == "sparse_vector":
            entries = [(key, _number(value)) for key, value in leaf.sparse_vector.sparse_value.items()]
        else:
            entries = [(at, _number(value)) for at, value in enumerate(leaf.vector.value)]
        for at, value in entries:
            if not 0 <= at < self._outputs:
                raise invalid(f"a leaf has {at + 1} outputs, the forest {self._outputs}")
            found[at] = value
        return found
