"""Layers: functions with variables of their own. Recurrent cells, and what runs them over time."""
