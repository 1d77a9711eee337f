"""The processor: its profile, the choices that depend on it, and the slots that the native tier fills."""
