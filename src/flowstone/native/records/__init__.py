"""Records: serialised Examples read by machine code."""
