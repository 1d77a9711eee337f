"""Control flow: conditionals, loops, calls of functions, mutual exclusion, assertions, Python functions in a
step."""
