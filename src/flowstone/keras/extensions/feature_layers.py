"""`tf.keras.layers.DenseFeatures`: that of `tf.feature_column`'s columns, as a layer of `tf.keras`."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from flowstone.keras.extensions.names import unique_name
from flowstone.layers.feature_columns import feature_layers
from flowstone.layers.feature_columns.serialization import deserialize_feature_columns

__all__ = ["dense_features_class"]


def dense_features_class(layers: ModuleType) -> Any:
    """The class; `layers`: the package's module, whose `Layer` it derives from."""
    layer: Any = vars(layers)["Layer"]

    class DenseFeatures(layer):  # type: ignore[misc]
        """What dense columns make of a dict of features, side by side: [batch, elements of all columns].

        Raises ValueError for columns that are not dense, and for features that are no dict.
        """

        def __init__(
            self, feature_columns: Any, trainable: bool = True, name: str | None = None, **keywords: Any
        ) -> None:
            super().__init__(name=name or unique_name("DenseFeatures"), trainable=trainable, **keywords)
            self._columns = feature_layers.DenseFeatures(feature_columns, trainable, self.name)

        def build(self, _: Any) -> None:
            """Makes the tables of the embeddings."""
            self._columns.build(None)
            for variable in self._columns.trainable_variables:
                self._trainable_weights.append(variable)
            for variable in self._columns.non_trainable_variables:
                self._non_trainable_weights.append(variable)
            self.built = True

        def call(self, features: Any) -> Any:
            """What the columns make of `features`."""
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

    DenseFeatures.__module__ = layers.__name__
    return DenseFeatures
