"""What neural networks are made of: convolutions, pooling, batch normalisation, cells, label paths."""
