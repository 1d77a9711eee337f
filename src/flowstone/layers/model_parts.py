"""`PartOfModel`: what a model of `tf.keras` asks of a layer, beside what every layer has."""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors import nest

__all__ = ["PartOfModel"]


class PartOfModel:
    """The part of `Layer` that models read: masks, metrics, and the layers within."""

    dynamic = False
    supports_masking = False
    _metrics: tuple[Any, ...] = ()

    metrics = property(lambda self: list(self._metrics), doc="None: layers of graphs have no metrics.")

    def _keep_input_shape(self, given: dict[str, Any]) -> None:
        """Keeps the shape of the inputs that the constructor was given: a model may begin with the layer."""
        if given.get("batch_input_shape"):
            self.batch_input_shape = tuple(given["batch_input_shape"])
        elif given.get("input_shape"):
            self.batch_input_shape = (given.get("batch_size"), *given["input_shape"])

    @property
    def submodules(self) -> tuple[Any, ...]:
        """The layers that are attributes, alone or in lists, and those within them, each once."""
        found: list[Any] = []
        for _, value in sorted(vars(self).items()):
            for item in nest.flatten(value) if isinstance(value, (list, tuple, dict)) else [value]:
                inner = [item, *item.submodules] if isinstance(item, PartOfModel) else []
                found += [each for each in inner if not any(each is other for other in found)]
        return tuple(found)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: that of the inputs if the layer supports masks.

        TypeError for a mask that the layer does not support.
        """
        if self.supports_masking or mask is None or all(each is None for each in nest.flatten(mask)):
            return mask if self.supports_masking else None
        name = getattr(self, "name", type(self).__name__)
        raise TypeError(f"Layer {name} does not support masking, but was passed an input_mask: {mask}")
