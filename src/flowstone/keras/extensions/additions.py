"""What layers add beside their outputs: losses, updates and metrics.

A layer keeps them in lists of its own. While a step of several replicas is built, `collecting` keeps those of
a replica's calls apart. What is added outside of calls lasts: a layer's `_lasting_losses`, such as those of
regularisers, and a model's `_lasting_metrics`, pairs of a tensor and its metric.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import strategy_of_several
from flowstone.keras.extensions import added_tensors
from flowstone.keras.published import own
from flowstone.ops.variables.replicas import current_replica

__all__ = [
    "Added",
    "changed_add",
    "changed_add_metric",
    "collecting",
    "computing",
    "regularize",
    "repeat_regularizers",
]


class Added:
    """Pairs of a layer and a loss or an update that it added."""

    def __init__(self) -> None:
        self.losses: list[tuple[Any, Any]] = []
        self.updates: list[tuple[Any, Any]] = []


class _Here(threading.local):
    added: Added | None = None
    is_computing = False  # a layer's method `call` is going on


_here = _Here()


@contextmanager
def collecting() -> Iterator[Added]:
    """Within, what layers add in this thread is kept here, in place of their own lists."""
    before, _here.added = _here.added, Added()
    try:
        yield _here.added
    finally:
        _here.added = before


@contextmanager
def computing(value: bool) -> Iterator[None]:
    """Within, `value` says whether this is the code of a layer's method `call`, which every call repeats."""
    before, _here.is_computing = _here.is_computing, value
    try:
        yield
    finally:
        _here.is_computing = before


def changed_add(published: Callable[..., None], kind: str) -> Callable[..., None]:
    """`add_loss` or `add_update`, whose items may be functions without arguments.

    `kind`: "losses" or "updates".
    """

    def add(self: Any, items: Any, inputs: Any = None) -> None:
        """Adds a tensor or operation, a function that makes one, or a list of these; see the package."""
        listed = items if isinstance(items, (list, tuple)) else [items]
        made = [item for item in (item() if callable(item) else item for item in listed) if item is not None]
        inputs = None if inputs is True else inputs
        if _here.added is not None:
            getattr(_here.added, kind).extend((self, item) for item in made)
            return
        if kind == "losses" and not _here.is_computing:
            made = [item for item in made if not added_tensors.as_loss(self, item)]
        published(self, made, inputs)
        if kind == "losses" and inputs is None and not _here.is_computing:
            self.__dict__.setdefault("_lasting_losses", []).extend(made)

    return add


def regularize(layer: Any) -> None:
    """Adds the losses of the layer's weights, of which it has noted the regularisers."""
    noted = vars(layer).pop("_regularized", ())
    for variable, regularizer in noted:
        with computing(False), tf.name_scope(f"{variable.op.name}/Regularizer"):
            layer.add_loss(regularizer(variable))
    vars(layer).setdefault("_regularizers", []).extend(noted)


def repeat_regularizers(layers: Iterable[Any]) -> None:
    """Makes the losses of weights that have been made once more, though nothing uses these: so does
    TensorFlow 1.15 whenever it asks a model for its losses, and random operations are numbered behind them.
    """
    for layer in layers:
        for variable, regularizer in vars(layer).get("_regularizers", ()):
            with tf.name_scope(f"{variable.op.name}/Regularizer"):
                regularizer(variable)


def changed_add_metric(published: Callable[..., None]) -> Callable[..., None]:
    """`add_metric`; each replica that calls the layer counts its own value in."""

    def add_metric(self: Any, value: Any, aggregation: str | None = None, name: str | None = None) -> None:
        """Adds a metric: a tensor whose mean is taken (`aggregation="mean"`), or a metric's result."""
        if aggregation not in (None, "mean"):
            raise ValueError(
                "We currently support only `mean` sample-wise metric aggregation. "
                f"You provided aggregation=`{aggregation}`"
            )
        is_result = hasattr(value, "_metric_obj")
        known = None if is_result else self._get_existing_metric(name)
        if known is not None and current_replica() is not None:
            known(value)
        if known is None and current_replica() is None and strategy_of_several() is not None:
            if is_result and not _here.is_computing:
                raise ValueError(
                    "Using the result of calling a `Metric` object when calling `add_metric` on a Functional "
                    "Model is not supported. Please pass the Tensor to monitor directly."
                )
            metric = value._metric_obj if is_result else own("metrics").Mean(name=name)
            self._metrics.append(metric)
            if not _here.is_computing:
                self.__dict__.setdefault("_lasting_metrics", []).append((value, metric))
        elif is_result or _here.is_computing or not added_tensors.as_metric(self, value, aggregation, name):
            published(self, value, name)

    return add_metric
