"""Precision of float32 products on a GPU: exact operands, or operands rounded to TF32's 10 bits of fraction.

Exact unless the program (`tf.config.experimental.enable_tensor_float_32_execution`) or the user
(``FLOWSTONE_TF32=1``) chooses otherwise, for matrix products and convolutions alike. In torch this is a
setting of the process, with another default for convolutions. It is changed while steps on a GPU launch their
kernels, and restored after the last of them, so that other torch code of the process is not affected. Code
that launches products on another thread meanwhile sees the steps' setting. If the program uses torch's own
settings for single operations, which exclude this one, these hold for steps too.
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
_running = 0  # steps that need the setting
_before: tuple[bool, bool] | None = None  # torch's own, while steps run


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Whether float32 products and convolutions on GPUs may use TF32, from the next steps on."""
    global _enabled
    _enabled = bool(enabled)


def tensor_float_32_execution_enabled() -> bool:
    """Whether float32 products and convolutions on GPUs may use TF32."""
    return _enabled


def with_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a step's `function`, so that torch's setting is the chosen one while it runs."""

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
    """Sets only what differs: torch takes any assignment, even of the present value, as a choice."""
    if for_products != present[0]:
        torch.backends.cuda.matmul.allow_tf32 = for_products
    if for_convolutions != present[1]:
        torch.backends.cudnn.allow_tf32 = for_convolutions
