"""Heads: what follows a model's logits, loss, metrics, predictions and signatures."""

from __future__ import annotations
