"""Loops and conditionals with less in them."""
