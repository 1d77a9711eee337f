"""Models in the TensorFlow 1 API whose training steps are measured; each builds into the default graph."""
