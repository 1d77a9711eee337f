"""The kernel of a node, and the error where there is none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.kernels import make_kernel


def environment(kind: str = "CPU") -> Environment:
    return Environment(kind, torch.device("cpu"), ResourceStore(), {})


def node() -> Any:
    with tf.Graph().as_default():
        return prune([tf.negative(tf.constant(1.0), name="minus")], [], []).nodes[-1]


def test_the_device_types_kernel_or_that_of_another() -> None:
    own = make_kernel(node(), environment())
    other = make_kernel(node(), environment("ARENA"), "CPU")
    assert type(own) is type(other) and own is not None


def test_no_kernel_is_an_error_that_names_the_node() -> None:
    message = r"No kernel of op Neg for device type ARENA \(node minus\)"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        make_kernel(node(), environment("ARENA"))


def test_what_a_factory_raises_names_the_node(monkeypatch: Any) -> None:
    def factory(node: Any, env: Any) -> Any:
        raise tf.errors.InvalidArgumentError(None, None, "not like this")

    minus = node()
    monkeypatch.setitem(minus.declaration.kernels, "CPU", factory)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)not like this.*minus"):
        make_kernel(minus, environment())
