"""Bytes between tasks: gRPC and direct connections, frames, values as messages, encryption."""
