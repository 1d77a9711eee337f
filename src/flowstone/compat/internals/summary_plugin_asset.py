"""`tensorflow.python.summary.plugin_asset`: files for TensorBoard's plugins, kept with a graph."""

from __future__ import annotations

import abc
from typing import Any

import flowstone as tf

__all__ = ["PluginAsset", "get_all_plugin_assets", "get_plugin_asset"]

_COLLECTION = "__tensorboard_plugin_asset_prefix__"


class PluginAsset(abc.ABC):
    """Files of one of TensorBoard's plugins; a graph has at most one of each class.

    A class below it has `plugin_name` and says by `assets()` which files, by name, with their contents.
    """

    plugin_name: str | None = None

    @abc.abstractmethod
    def assets(self) -> dict[str, Any]:
        """The files: contents by name."""


def get_plugin_asset(plugin_asset_cls: type[PluginAsset], graph: Any = None) -> Any:
    """The graph's asset of this class, which is made where there is none.

    Raises ValueError if the class has no `plugin_name`, or another class of that name is there.
    """
    if not plugin_asset_cls.plugin_name:
        raise ValueError(f"Class {plugin_asset_cls.__name__} has no plugin_name")
    for asset in get_all_plugin_assets(graph):
        if asset.plugin_name == plugin_asset_cls.plugin_name:
            if not isinstance(asset, plugin_asset_cls):
                raise ValueError(f"Plugin name collision for {plugin_asset_cls.plugin_name}")
            return asset
    made = plugin_asset_cls()
    (graph or tf.get_default_graph()).add_to_collection(_COLLECTION, made)
    return made


def get_all_plugin_assets(graph: Any = None) -> list[Any]:
    """All assets of a graph, the default graph's for None."""
    return (graph or tf.get_default_graph()).get_collection(_COLLECTION)
