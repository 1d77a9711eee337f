"""How one task reaches others: neighbours, a master's workers, collective operations."""
