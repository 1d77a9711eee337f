"""How exactly a GPU multiplies float32: as it is, or with operands rounded to TF32's 10 bits of fraction.

Exact unless the program (`tf.config.experimental.enable_tensor_float_32_execution`) or the user
(``FLOWSTONE_TF32=1``) chooses otherwise, for matrix products and convolutions alike. torch has the choice as
a setting of the process, with another default for convolutions; it is changed while steps on a GPU launch
their kernels, and put back after the last of them, so that other torch code of the process is what it was.
Code that launches products on another thread meanwhile sees the steps' setting. Whoever has chosen by
torch's own settings for single operations, which exclude this one, has chosen for the steps too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import flags

__all__ = ["enable_tensor_float_32_execution", "tensor_float_32_execution_enabled"]

_enabled = flags.TF32
_lock = threading.Lock()
_running = 0  # steps that want the setting
_before: tuple[bool, bool] | None = None  # torch's own, while steps run


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Whether float32 products and convolutions on GPUs may use TF32, from the next steps on."""
    global _enabled
    _enabled = bool(enabled)


def tensor_float_32_execution_enabled() -> bool:
    """Whether float32 products and convolutions on GPUs may use TF32."""
    return _enabled


def with_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, a step's, within which torch's setting is the chosen one."""

    def run(*arguments: Any) -> Any:
        _enter()
        try:
            return function(*arguments)
        finally:
            _leave()

    return run


def _enter() -> None:
    global _running, _before
    with _lock:
        _running += 1
        if _running == 1:
            _before = _setting()
            if _before is not None:
                _set(_enabled, _enabled, _before)


def _leave() -> None:
    global _running
    with _lock:
        _running -= 1
        if _running == 0 and _before is not None:
            present = _setting()
            if present is not None:
                _set(*_before, present)


def _setting() -> tuple[bool, bool] | None:
    """For products and for convolutions; None if torch's settings for single operations are in use."""
    try:
        return bool(torch.backends.cuda.matmul.allow_tf32), bool(torch.backends.cudnn.allow_tf32)
    except RuntimeError:
        return None


def _set(for_products: bool, for_convolutions: bool, present: tuple[bool, bool]) -> None:
    """Sets only what differs: being set, even to what it was, is a choice to torch."""
    if for_products != present[0]:
        torch.backends.cuda.matmul.allow_tf32 = for_products
    if for_convolutions != present[1]:
        torch.backends.cudnn.allow_tf32 = for_convolutions
