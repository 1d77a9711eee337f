"""`flowstone.audio`: WAV files."""
