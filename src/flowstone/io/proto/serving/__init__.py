"""The messages of TensorFlow Serving's gRPC services, under the same rules as the others of `io.proto`.

They are in the package ``flowstone.serving``, TensorFlow Serving's being ``tensorflow.serving``; `health`
has the messages of gRPC's health service. The services are named where they are answered
(`flowstone.serving`).
"""
