"""`flowstone.audio`: WAV files."""

from flowstone.ops.audio.wave_files import decode_wav, encode_wav
