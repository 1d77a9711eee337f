"""Summaries: what TensorBoard shows."""
