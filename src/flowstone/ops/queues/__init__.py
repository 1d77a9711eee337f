"""What holds tensors between steps: queues, barriers, staging areas, accumulators."""
