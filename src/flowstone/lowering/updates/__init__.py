"""Optimisers' steps with less traffic and fewer calls."""
