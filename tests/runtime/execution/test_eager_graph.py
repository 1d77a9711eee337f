"""`EagerGraph` computes operations as they are added; `tests/client/test_eager_functions.py` has more."""

from __future__ import annotations

import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.kernel import Environment
from flowstone.runtime.execution.eager_graph import EagerGraph
from flowstone.runtime.steps.step import Step


def test_values_are_there_when_operations_are_added() -> None:
    graph = EagerGraph(Environment(), Step())
    with graph.as_default():
        x = graph.tensor(torch.tensor([1.0, 2.0]), tf.float32)
        y = x * 2.0 + 1.0
        assert y.numpy().tolist() == [3, 5] and y.shape.as_list() == [2]
        with pytest.raises(NotImplementedError, match="variable"):
            tf.get_variable("v", [1], use_resource=True)
        with pytest.raises(NotImplementedError, match="variable"):
            tf.get_variable("w", [1], use_resource=False)
