"""Orders and recomputation that need less memory."""
