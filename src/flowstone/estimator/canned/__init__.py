"""Estimators with a model of their own: baseline, linear, networks, both together, boosted trees."""

from __future__ import annotations
