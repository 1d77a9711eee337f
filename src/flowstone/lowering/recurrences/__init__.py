"""Recurrent cells as layers, one kernel each."""
