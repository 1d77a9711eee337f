"""`flowstone.image`: images resized, and cut into patches."""

from flowstone.ops.arrays.image_patches import extract_image_patches
from flowstone.ops.images.image_resizing import resize_bilinear, resize_nearest_neighbor
