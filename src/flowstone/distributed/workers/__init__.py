"""What runs on a task: the worker with its parts of graphs, the steps it knows, their rendezvous."""
