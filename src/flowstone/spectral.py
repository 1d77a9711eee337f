"""`flowstone.spectral`: Fourier and cosine transforms."""

from flowstone.ops.signals.cosine_transforms import dct, idct
from flowstone.ops.signals.fourier_transforms import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from flowstone.ops.signals.real_transforms import irfft, irfft2d, irfft3d, rfft, rfft2d, rfft3d
