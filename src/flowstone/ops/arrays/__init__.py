"""Arrays: their shapes, and their elements chosen, moved, joined and cut, whatever they are."""
