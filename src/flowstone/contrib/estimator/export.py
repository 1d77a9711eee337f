"""Exports of Estimators in one mode or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["export_all_saved_models", "export_saved_model_for_mode"]


def export_all_saved_models(
    estimator: Any, export_dir_base: Any, input_receiver_fn_map: Mapping[str, Callable[[], Any]],
    assets_extra: Any = None, as_text: bool = False, checkpoint_path: Any = None,
) -> bytes:  # fmt: skip
    """`estimator.experimental_export_all_saved_models` of the other arguments."""
    path: bytes = estimator.experimental_export_all_saved_models(
        export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
    )
    return path


def export_saved_model_for_mode(
    estimator: Any, export_dir_base: Any, input_receiver_fn: Callable[[], Any], assets_extra: Any = None,
    as_text: bool = False, checkpoint_path: Any = None, mode: str = "infer",
) -> bytes:  # fmt: skip
    """Exports an Estimator in one mode, with the receiver function of this mode."""
    receivers = {mode: input_receiver_fn}
    return export_all_saved_models(
        estimator, export_dir_base, receivers, assets_extra, as_text, checkpoint_path
    )
