"""Hooks around the steps of a session, the global step that they follow, and summary writers."""
