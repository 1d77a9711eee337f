"""`tf.keras.losses`: similarities are positive, as TensorFlow 1.15 has them, and reductions may be AUTO.

The class `Reduction` is among the names, as in `tf.compat.v2.losses`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from flowstone.keras.extensions.loss_functions import FUNCTIONS
from flowstone.keras.published import own

__all__ = ["cosine_similarity", "extend"]

_AUTO = "auto"


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """The cosines of the angles between the vectors along `axis`."""
    backend = own("backend")
    products = backend.l2_normalize(y_true, axis=axis) * backend.l2_normalize(y_pred, axis=axis)
    return backend.sum(products, axis=axis)


def _changed_init(published: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, reduction: str = _AUTO, name: str | None = None) -> None:
        """`reduction`: how the values of examples are joined; AUTO: their mean."""
        mean = own("utils.losses_utils").Reduction.SUM_OVER_BATCH_SIZE
        published(self, reduction=mean if reduction == _AUTO else reduction, name=name)
        self._given_reduction = reduction

    return __init__


def _changed_config(published: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def get_config(self: Any) -> dict[str, Any]:
        """What it is made of."""
        return {**published(self), "reduction": self._given_reduction}

    return get_config


def _similarity_class(wrapper: Any) -> Any:
    class CosineSimilarity(wrapper):  # type: ignore[misc]
        """The cosines of the angles between labels and predictions along `axis`."""

        def __init__(self, axis: int = -1, reduction: str = _AUTO, name: str = "cosine_similarity") -> None:
            super().__init__(cosine_similarity, reduction=reduction, name=name, axis=axis)

    return CosineSimilarity


def extend(module: ModuleType) -> None:
    """Gives `keras.losses` what TensorFlow's has."""
    names = vars(module)
    names.update(dict.fromkeys(("cosine_similarity", "cosine_proximity", "cosine"), cosine_similarity))
    for name, (function, others) in FUNCTIONS.items():
        names.update(dict.fromkeys((name, *others.split()), function))
    if "Loss" not in names:  # Keras 2.2
        return
    loss = names["Loss"]
    loss.__init__ = _changed_init(loss.__init__)
    loss.get_config = _changed_config(loss.get_config)
    names["Reduction"] = reduction = own("utils.losses_utils").Reduction
    reduction.AUTO = _AUTO
    for made in list(names.values()):
        init = getattr(made, "__init__", None) if isinstance(made, type) and issubclass(made, loss) else None
        defaults = getattr(init, "__defaults__", None)
        if init is not None and defaults:
            init.__defaults__ = tuple(
                _AUTO if value == "sum_over_batch_size" else value for value in defaults
            )
    names["CosineSimilarity"] = _similarity_class(names["LossFunctionWrapper"])
