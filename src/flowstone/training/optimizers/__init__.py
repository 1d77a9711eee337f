"""Optimisers, their slots, synchronous replicas, learning-rate schedules and moving averages."""
