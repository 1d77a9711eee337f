"""Look-up tables: from keys to values, in the session's containers."""
