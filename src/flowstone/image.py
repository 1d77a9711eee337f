"""`flowstone.image`: images resized, and cut into patches."""

from flowstone.ops.image_resizing import resize_bilinear, resize_nearest_neighbor
from flowstone.ops.space_moves import extract_image_patches
