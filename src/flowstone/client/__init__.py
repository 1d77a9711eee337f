"""What a user's program holds in its hand: sessions, feeds and fetches."""
