"""What is declared of an op: arguments, attributes, kernels, cost; and how a node is made of it."""
