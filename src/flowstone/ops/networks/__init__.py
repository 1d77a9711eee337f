"""What neural networks are made of: convolutions, pooling, normalisation, activations, losses, embeddings."""
