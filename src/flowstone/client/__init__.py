"""What a user's program calls: sessions, feeds and fetches."""
