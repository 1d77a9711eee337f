"""What `tf.keras` of TensorFlow 1 has differently from the package that it is made of here.

`extend(path, module)` is called for each module of `flowstone.keras.package` as soon as it is loaded, before
other modules take names from it. `EXTENSIONS` says which file here changes which module; each has a function
`extend(module)`, which replaces or adds methods and classes.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["EXTENSIONS", "extend"]

EXTENSIONS: dict[str, tuple[str, ...]] = {
    "activations": ("activations",),
    "applications": ("applications",),
    "backend": ("backend",),
    "callbacks": ("callbacks", "model_checkpoints", "progress_callbacks", "tensorboard"),
    "callbacks.callbacks": ("callbacks", "model_checkpoints", "progress_callbacks"),
    "callbacks.tensorboard_v1": ("tensorboard",),
    "constraints": ("constraints",),
    "engine.base_layer": ("layers", "operation_layers"),
    "engine.input_layer": ("inputs",),
    "engine.network": ("networks",),
    "engine.saving": ("saving",),
    "engine.sequential": ("sequences",),
    "engine.training": ("models",),
    "engine.training_arrays": ("step_results", "example_orders"),
    "engine.training_generator": ("step_results",),
    "engine.training_utils": ("array_ranks", "metric_names", "label_types"),
    "initializers": ("initializers",),
    "layers": ("layer_names",),
    "layers.convolutional_recurrent": ("shapes", "recurrent_steps"),
    "layers.convolutional": ("convolutions", "shapes", "graph_layers", "configurations"),
    "layers.core": ("convolutions", "shapes", "core_layers", "graph_layers"),
    "layers.cudnn_recurrent": ("shapes", "configurations"),
    "layers.embeddings": ("shapes", "configurations"),
    "layers.local": ("shapes", "configurations"),
    "layers.normalization": ("normalization", "shapes", "graph_layers"),
    "layers.wrappers": ("shapes", "wrappers"),
    "layers.pooling": ("shapes", "graph_layers"),
    "layers.recurrent": ("recurrent_steps", "recurrent_cells", "shapes", "recurrent_layers"),
    "legacy.interfaces": ("arguments",),
    "losses": ("losses",),
    "metrics": ("metrics",),
    "models": ("premade_models", "cloning"),
    "optimizers": ("optimizers", "train_optimizers"),
    "utils.generic_utils": ("progress_bars",),
    "utils.losses_utils": ("weighted_losses",),
    "utils.metrics_utils": ("metric_results",),
}
"""The files here that extend a module, by its path within the package."""


def extend(path: str, module: ModuleType) -> None:
    """Changes the module of this path within the package, if something is to be changed."""
    files = EXTENSIONS.get(path, ("shapes",) if path.startswith("layers.") else ())
    for name in files:
        import_module(f"{__name__}.{name}").extend(module)
