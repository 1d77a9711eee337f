"""Layers: functions with variables of their own. Recurrent cells, and the functions that run them over time."""
