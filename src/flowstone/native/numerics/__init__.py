"""What element-wise operations and reductions mean for one vector; exponentials and special functions."""
