"""What belongs to the whole process: devices, threads, cores, kept pages, settings."""
