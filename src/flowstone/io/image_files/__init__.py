"""Images as files: PNG, JPEG, GIF, WebP by Pillow, BMP by hand; arrays [height, width, channels] of pixels.

Bad files raise InvalidArgumentError. Nothing larger is allocated than a file of that size can hold.
"""
