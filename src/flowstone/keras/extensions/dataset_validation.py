"""Validation by a Dataset, an iterator or tensors, of a model that is trained on arrays."""

from __future__ import annotations

from typing import Any

from flowstone.keras.published import own
from flowstone.keras.training_data import batches_of

__all__ = ["validation_by"]


def validation_by(model: Any, data: Any, steps: int | None, frequency: Any = 1) -> Any:
    """A callback that adds the results of validation to an epoch's, before other callbacks get them.

    `steps`: batches of each validation; None, all of a finite Dataset. `frequency`: epochs from one
    validation to the next, or the numbers of the epochs, from 1 on, after which there is one.
    """
    callback_class: Any = own("callbacks").Callback
    parts = data if isinstance(data, (tuple, list)) else (data,)
    inputs, targets, weights = (*parts, None, None)[:3]
    batches = batches_of(inputs, targets, weights, steps)
    read = batches.read()

    class DatasetValidation(callback_class):  # type: ignore[misc]
        """Evaluates the model at the end of an epoch."""

        def set_params(self, params: dict[str, Any]) -> None:
            """Says in the parameters, which all callbacks share, that there is validation."""
            params["metrics"] = [*params["metrics"], *(f"val_{name}" for name in model.metrics_names)]
            params.update(do_validation=True, validation_steps=len(batches))
            super().set_params(params)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            """Adds `val_loss` and `val_` with the name of each metric."""
            number = epoch + 1
            if number % frequency == 0 if isinstance(frequency, int) else number in frequency:
                results = model.evaluate_generator(read, len(batches), workers=0)
                results = results if isinstance(results, list) else [results]
                logs.update(zip((f"val_{name}" for name in model.metrics_names), results))

    return DatasetValidation()
