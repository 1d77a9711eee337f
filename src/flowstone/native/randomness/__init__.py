"""Random words and numbers as TensorFlow draws them: uniform, normal, gamma, Poisson, classes."""
