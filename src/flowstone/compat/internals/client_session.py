"""`tensorflow.python.client.session`: what sessions have in common."""

from __future__ import annotations

from flowstone.client.feeds_fetches import (
    register_session_run_conversion_functions as register_session_run_conversion_functions,
)
from flowstone.client.session import BaseSession

__all__ = ["SessionInterface", "register_session_run_conversion_functions"]

SessionInterface = BaseSession
