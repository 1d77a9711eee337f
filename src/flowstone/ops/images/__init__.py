"""Images as pictures."""
