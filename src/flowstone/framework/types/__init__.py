"""Element types, static shapes, and values as NumPy arrays and messages."""
