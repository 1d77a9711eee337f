"""Examples in JSON, for classification and regression: ``{"age": 46, "words": ["a", {"b64": "…"}]}``.

A feature is a value or a list of values of one kind: integers make an int64_list, numbers with a decimal
among them a float_list, strings a bytes_list. Features of the ``context`` belong to every example; an
example's own come before them.
"""

from __future__ import annotations

from typing import Any

from flowstone.io.proto.example_pb2 import Example
from flowstone.serving.inference import invalid
from flowstone.serving.json_tensors import binary

__all__ = ["examples_of"]


def examples_of(body: dict[str, Any]) -> list[bytes]:
    """The serialised Examples of a request's ``examples`` and ``context``. InvalidArgumentError names the
    feature that is none."""
    examples = body.get("examples")
    if not isinstance(examples, list) or not examples:
        raise invalid("'examples' must be a list that is not empty.")
    context = Example()
    if "context" in body:
        _fill(context, body["context"], "the context")
    found = []
    for index, features in enumerate(examples):
        example = Example()
        example.CopyFrom(context)
        _fill(example, features, f"example {index}")
        found.append(example.SerializeToString(deterministic=True))
    return found


def _fill(example: Any, features: Any, where: str) -> None:
    if not isinstance(features, dict):
        raise invalid(f"{where} must be an object of features.")
    for name, value in features.items():
        feature = example.features.feature[name]
        feature.Clear()
        _set(feature, value if isinstance(value, list) else [value], f"{where}: feature '{name}'")


def _set(feature: Any, values: list[Any], where: str) -> None:
    kinds = set(map(type, values))
    try:
        if not kinds:
            return
        if kinds == {int}:
            feature.int64_list.value.extend(values)
        elif kinds <= {int, float}:
            feature.float_list.value.extend(values)
        elif kinds <= {str, dict}:
            feature.bytes_list.value.extend([binary(where, value) for value in values])
        else:
            raise invalid(f"{where} must be a number, a string, or a list of either.")
    except (ValueError, OverflowError, TypeError):
        raise invalid(f"{where} has a value out of range.") from None
