"""What a session keeps for fetches, feeds and shapes: plans, and when they are made."""
