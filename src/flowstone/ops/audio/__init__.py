"""Sound: as files, and as spectra."""
