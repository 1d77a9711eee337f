"""Kernels of images: colours, crops, projections, glimpses, drawn boxes, the choice of boxes."""
