"""Variables of both kinds: how they are made, found by name, read, assigned and updated by optimisers."""
