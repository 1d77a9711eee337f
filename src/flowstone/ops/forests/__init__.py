"""Decision trees that grow while examples stream in."""
