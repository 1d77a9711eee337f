"""The process: its messages, threads, exit and garbage collector; command-line flags; what was built."""
