"""Images as files: PNG, JPEG and GIF through Pillow, BMP by hand; arrays [height, width, channels] of pixels.

Bad files raise InvalidArgumentError. Nothing larger is allocated than a file of that size can hold.
"""
