"""`flowstone.image`: images resized, cut, turned, recoloured and compared, and boxes in them."""

from flowstone.ops.arrays.image_patches import extract_image_patches
from flowstone.ops.images.box_functions import (
    combined_non_max_suppression,
    crop_and_resize,
    draw_bounding_boxes,
    extract_patches,
    non_max_suppression,
    non_max_suppression_overlaps,
    non_max_suppression_padded,
    non_max_suppression_with_scores,
)
from flowstone.ops.images.codec_functions import (
    adjust_jpeg_quality,
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
    random_jpeg_quality,
)
from flowstone.ops.images.colour_functions import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    convert_image_dtype,
    grayscale_to_rgb,
    hsv_to_rgb,
    per_image_standardization,
    random_brightness,
    random_contrast,
    random_hue,
    random_saturation,
    rgb_to_grayscale,
    rgb_to_hsv,
    rgb_to_yiq,
    rgb_to_yuv,
    yiq_to_rgb,
    yuv_to_rgb,
)
from flowstone.ops.images.distorted_boxes import sample_distorted_bounding_box
from flowstone.ops.images.glimpses import extract_glimpse
from flowstone.ops.images.image_comparison import (
    image_gradients,
    psnr,
    sobel_edges,
    ssim,
    ssim_multiscale,
    total_variation,
)
from flowstone.ops.images.image_cropping import (
    central_crop,
    crop_to_bounding_box,
    pad_to_bounding_box,
    resize_image_with_crop_or_pad,
)
from flowstone.ops.images.image_cropping import resize_image_with_crop_or_pad as resize_with_crop_or_pad
from flowstone.ops.images.image_resizing import resize_bilinear, resize_nearest_neighbor
from flowstone.ops.images.image_scaling import (
    ResizeMethod,
    resize_area,
    resize_bicubic,
    resize_image_with_pad,
    resize_images,
)
from flowstone.ops.images.image_scaling import resize_images as resize
from flowstone.ops.images.image_turning import (
    flip_left_right,
    flip_up_down,
    random_flip_left_right,
    random_flip_up_down,
    rot90,
    transpose,
    transpose_image,
)
from flowstone.ops.randomness.random_choice import random_crop
