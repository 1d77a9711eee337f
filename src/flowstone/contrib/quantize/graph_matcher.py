"""Patterns of operations, and where a graph has them.

add = OpTypePattern("Add|AddV2", inputs=["*", OpTypePattern("Const")])
for match in GraphMatcher(add).match_graph(graph):
    match.get_op(add)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Any

import flowstone as tf

__all__ = ["GraphMatcher", "MatchResult", "OneofPattern", "OpTypePattern", "Pattern"]


class MatchResult:
    """What each pattern was matched by: operations and tensors, by the pattern or by its name."""

    def __init__(self) -> None:
        self._found: dict[Any, tuple[Any, Any]] = {}
        self._names: dict[str, Any] = {}

    def add(self, pattern: Any, op: Any, tensor: Any) -> None:
        """Notes that `op`, whose output `tensor` is meant, matched. ValueError for a name twice."""
        self._found[pattern] = op, tensor
        if pattern.name is not None:
            if pattern.name in self._names:
                raise ValueError(
                    f"Name {pattern.name} is used twice. Each named pattern must have a name of its own."
                )
            self._names[pattern.name] = pattern

    def _of(self, pattern_or_name: Any) -> Any:
        if isinstance(pattern_or_name, str):
            pattern_or_name = self._names.get(pattern_or_name)
        elif not isinstance(pattern_or_name, Pattern):
            raise ValueError(f"pattern_or_name has type {type(pattern_or_name)}. Expect Pattern or str.")
        return self._found.get(pattern_or_name, (None, None))

    def get_op(self, pattern_or_name: Any) -> Any:
        """The operation of a pattern or of its name; None if it matched none."""
        return self._of(pattern_or_name)[0]

    def get_tensor(self, pattern_or_name: Any) -> Any:
        """The tensor of a pattern or of its name; None if it matched none, or is the pattern itself."""
        return self._of(pattern_or_name)[1]

    def merge_from(self, other: MatchResult) -> None:
        """Adds what another result has."""
        self._found.update(other._found)
        self._names.update(other._names)


class Pattern:
    """The base class: `match` says whether an operation fits."""

    name: str | None = None

    def match(self, op: Any, tensor: Any) -> MatchResult | None:
        """What the pattern and those within match; None if `op`, whose output is `tensor`, does not fit."""
        raise NotImplementedError(f"{type(self).__name__}.match")


class OpTypePattern(Pattern):
    """An operation of some type, with inputs of some patterns.

    Args:
        op_type: the type; several with "|" between them; "*" for any.
        name: by which results say what matched.
        inputs: for each input a pattern, a type as text, or None for any; by default any inputs fit.
        ordered_inputs: False if the inputs may come in any order, of eight at most.

    Raises ValueError for more than eight inputs in any order.
    """

    def __init__(
        self, op_type: str, name: str | None = None, inputs: Any = None, ordered_inputs: bool = True
    ) -> None:
        self._op_type, self.name = op_type, name
        self._inputs = [
            item if item is None or isinstance(item, Pattern) else OpTypePattern(item)
            for item in (inputs or [])
        ]
        self._ordered_inputs = ordered_inputs
        if not ordered_inputs and len(self._inputs) > 8:
            raise ValueError("Only < 8 inputs are allowed when ordered_inputs is False.")

    op_type = property(lambda self: self._op_type, doc="The type or types.")
    inputs = property(lambda self: self._inputs, doc="The patterns of the inputs.")

    def match(self, op: Any, tensor: Any) -> MatchResult | None:
        """See `Pattern.match`."""
        if self._op_type != "*" and op.type not in self._op_type.split("|"):
            return None
        result = MatchResult()
        result.add(self, op, tensor)
        if not self._inputs:
            return result
        if len(op.inputs) != len(self._inputs):
            return None
        orders = [self._inputs] if self._ordered_inputs else permutations(self._inputs)
        for order in orders:
            found = self._match_inputs(op, order)
            if found is not None:
                result.merge_from(found)
                return result
        return None

    @staticmethod
    def _match_inputs(op: Any, patterns: Iterable[Any]) -> MatchResult | None:
        result = MatchResult()
        for tensor, pattern in zip(op.inputs, patterns):
            if pattern is None:
                continue
            found = pattern.match(tensor.op, tensor)
            if found is None:
                return None
            result.merge_from(found)
        return result


class OneofPattern(Pattern):
    """The first of several patterns that matches."""

    def __init__(self, sub_patterns: Iterable[Pattern]) -> None:
        self._sub_patterns = list(sub_patterns)

    def match(self, op: Any, tensor: Any) -> MatchResult | None:
        """See `Pattern.match`."""
        for pattern in self._sub_patterns:
            found = pattern.match(op, tensor)
            if found is not None:
                return found
        return None


class GraphMatcher:
    """Finds a pattern. ValueError for what is no pattern."""

    def __init__(self, pattern: Pattern) -> None:
        if not isinstance(pattern, Pattern):
            raise ValueError("pattern is expected to be a Pattern")
        self._pattern = pattern

    def match_op(self, op: Any) -> MatchResult | None:
        """What the pattern matches that ends with this operation; None if it does not."""
        return self._pattern.match(op, None)

    def match_ops(self, ops: Iterable[Any]) -> Iterator[MatchResult]:
        """The results of those operations that match."""
        for op in ops:
            found = self.match_op(op)
            if found is not None:
                yield found

    def match_graph(self, graph: tf.Graph) -> Iterator[MatchResult]:
        """The results of all operations of a graph that match."""
        yield from self.match_ops(graph.get_operations())
