"""What the sessions of clients need: the master, its plans, steps in several calls, what steps cost."""
