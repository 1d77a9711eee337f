"""Passes that lower a step's memory: order, recomputation, swapping."""
