"""`tf.keras.models.save_model` and `load_model`, of files of HDF5 and of SavedModels."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flowstone.keras import exported_models
from flowstone.keras.published import own

__all__ = ["extend"]


def extend(module: ModuleType) -> None:
    """Has the functions of `keras.engine.saving` write and read SavedModels, too."""
    names = vars(module)
    save_file, load_file = names["save_model"], names["load_model"]

    def save_model(
        model: Any,
        filepath: Any,
        overwrite: bool = True,
        include_optimizer: bool = True,
        save_format: str | None = None,
        signatures: Any = None,
        options: Any = None,
    ) -> None:
        """Saves a model, with its optimiser's state if `include_optimizer`.

        Args:
            save_format: 'tf' for a SavedModel, 'h5' for a file of HDF5, which is the default.
            overwrite: whether an existing file or folder is replaced.
            signatures, options: ignored; a SavedModel has the signature of serving.

        Raises ValueError for another format, NotImplementedError for a file of a class of the program's own.
        """
        if exported_models.is_format_of_folder(filepath, save_format):
            exported_models.save(model, str(filepath), overwrite, include_optimizer)
        elif not (model._is_graph_network or isinstance(model, own("engine.sequential").Sequential)):
            raise NotImplementedError(
                "Saving the model to HDF5 format requires the model to be a Functional model or a Sequential "
                "model: one of a class of the program's own is saved with `save_weights`, or as a SavedModel."
            )
        else:
            save_file(model, filepath, overwrite, include_optimizer)

    def load_model(filepath: Any, custom_objects: Any = None, compile: bool = True) -> Any:
        """The model of a file of HDF5 or the folder of a SavedModel; compiled, if it was when it was saved.

        `custom_objects`: classes and functions that the configuration names, by name.
        """
        if exported_models.is_saved_model(filepath):
            return exported_models.load(filepath, custom_objects, compile)
        return load_file(filepath, custom_objects, compile)

    names.update(save_model=save_model, load_model=load_model)
