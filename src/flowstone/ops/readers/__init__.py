"""Files, and what is read from them."""
