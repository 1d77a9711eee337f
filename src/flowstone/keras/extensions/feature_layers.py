"""`DenseFeatures` and `SequenceFeatures` of `tf.keras`: layers of `tf.feature_column`'s columns."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from flowstone.keras.extensions.names import unique_name
from flowstone.layers.feature_columns import feature_layers
from flowstone.layers.feature_columns.serialization import deserialize_feature_columns

__all__ = ["feature_layer_classes"]


def feature_layer_classes(layers: ModuleType) -> dict[str, Any]:
    """The classes by name; `layers`: the package's module, whose `Layer` they derive from."""
    return {
        "DenseFeatures": _class_of(layers, feature_layers.DenseFeatures),
        "SequenceFeatures": _class_of(layers, feature_layers.SequenceFeatures),
    }


def _class_of(layers: ModuleType, columns_class: Any) -> Any:
    layer: Any = vars(layers)["Layer"]

    class FeatureLayer(layer):  # type: ignore[misc]
        def __init__(
            self, feature_columns: Any, trainable: bool = True, name: str | None = None, **keywords: Any
        ) -> None:
            super().__init__(name=name or unique_name(type(self).__name__), trainable=trainable, **keywords)
            self._columns = columns_class(feature_columns, trainable, self.name)

        def build(self, _: Any) -> None:
            """Makes the tables of the embeddings."""
            self._columns.build(None)
            for variable in self._columns.trainable_variables:
                self._trainable_weights.append(variable)
            for variable in self._columns.non_trainable_variables:
                self._non_trainable_weights.append(variable)
            self.built = True

        def call(self, features: Any) -> Any:
            """What the columns make of `features`, a dict."""
            if not isinstance(features, Mapping):
                raise ValueError("We expected a dictionary here. Instead we got: ", features)
            return self._columns.call(features)

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            columns = self._columns.get_config()["feature_columns"]
            return {**super().get_config(), "feature_columns": columns}

        @classmethod
        def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
            """A layer of this configuration."""
            found = deserialize_feature_columns(config["feature_columns"], custom_objects)
            return cls(**{**config, "feature_columns": found})

    FeatureLayer.__name__ = FeatureLayer.__qualname__ = columns_class.__name__
    FeatureLayer.__doc__, FeatureLayer.__module__ = columns_class.__doc__, layers.__name__
    return FeatureLayer
