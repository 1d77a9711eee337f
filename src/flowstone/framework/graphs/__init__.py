"""Graphs of users and of plans, and GraphDefs both ways."""
