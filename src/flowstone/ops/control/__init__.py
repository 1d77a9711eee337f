"""Order and choice: conditionals, loops, calls of functions, exclusion, assertions, Python in a step."""
