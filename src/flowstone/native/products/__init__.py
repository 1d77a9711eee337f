"""Matrix products of few rows or few columns, with what follows them; joined rows; joint descents."""
