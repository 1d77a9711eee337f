"""Numbers as small integers with a range: conversions, their simulation, and arithmetic by integers."""
