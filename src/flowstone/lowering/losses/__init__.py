"""Losses and their gradients as one kernel."""
