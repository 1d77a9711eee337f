"""The state of one execution, and where the parts of executions meet: rendezvous, collective operations."""
