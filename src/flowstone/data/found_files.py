"""The files that a dataset lists: there must be some."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.control.conditionals import Assert
from flowstone.ops.readers.files import matching_files
from flowstone.ops.strings.joining import reduce_join

__all__ = ["found_files"]


def found_files(pattern: Any) -> Tensor:
    """As `matching_files`; InvalidArgumentError in the step where no file fits."""
    graph = get_default_graph()
    pattern = convert_to_tensor(pattern, dtypes.string, name="file_pattern")
    names = matching_files(pattern)
    is_found = F.Greater(shape_of(names)[0], 0, name="match_not_empty")
    patterns = reduce_join(pattern, separator=", ")
    words = convert_to_tensor("No files matched pattern: ", name="message/x")
    message = F.Add(words, patterns, name="message")
    with graph.control_dependencies([Assert(is_found, [message], 1, "assert_not_empty")]):
        return F.Identity(names)
