"""Marks of tests that need the published package keras, and of those that say what is without it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

with_keras = pytest.mark.skipif(find_spec("keras") is None, reason="needs flowstone[keras]")
without_keras = pytest.mark.skipif(find_spec("keras") is not None, reason="keras is installed")
