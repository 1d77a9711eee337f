"""`tensorflow.python.autograph.impl.api`: marks of functions whose Python stays as it is, as it does here."""

from __future__ import annotations

from flowstone.autograph import do_not_convert as do_not_convert

__all__ = ["do_not_convert"]
