"""Names of `tf.keras.layers` that the package does not have, or that saved models call a layer by."""

from __future__ import annotations

from types import ModuleType

from flowstone.keras.extensions.added_tensors import layer_classes
from flowstone.keras.extensions.attention_layers import attention_classes
from flowstone.keras.extensions.feature_layers import feature_layer_classes
from flowstone.keras.published import own

__all__ = ["extend"]


def extend(module: ModuleType) -> None:
    """Puts the names into `keras.layers`."""
    names = vars(module)
    normalization = own("layers.normalization")
    for name in ("BatchNormalization", "LayerNormalization"):
        names[name] = getattr(normalization, name)
    names["AbstractRNNCell"] = own("layers.recurrent").AbstractRNNCell
    base = own("engine.base_layer")
    names.update(attention_classes(base), **feature_layer_classes(base), **layer_classes(base))
    names["TensorFlowOpLayer"] = base.TensorFlowOpLayer
    for version in ("BatchNormalizationV1", "BatchNormalizationV2"):
        names[version] = names["BatchNormalization"]
