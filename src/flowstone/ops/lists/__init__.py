"""Lists of tensors that live in a step: arrays, stacks, and variants that hold lists."""
