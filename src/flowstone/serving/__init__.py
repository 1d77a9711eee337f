"""Answers TensorFlow Serving's requests, REST and gRPC, for a SavedModel: what `flowstone serve` does.

The room takes bytes and gives bytes; only two files touch sockets.

- `servable` is one loaded version: signatures, and arrays in, arrays out. `batching` joins requests that
  wait.
- `model` is the served name: which version is loaded, who still uses an old one, what is listed beside it.
- `inference` says what predict, classify and regress mean for a signature, and checks what is fed.
- `rest` turns (method, path, body) into (status, body), with `json_tensors` and `json_examples`.
- `services` turns (gRPC method, request's bytes) into the response's bytes, with `proto_tensors`.
- `http_server` (waitress) and `grpc_server` (grpcio) are thin: they hand bytes over, and nothing else.
- `server` puts them together: starts, watches for new versions, ends in order.

A request that cannot be answered raises an error of `flowstone.errors`. Its code is gRPC's status; `rest`
has the table of HTTP's. Everything but `http_server` works without waitress, which `pip install
'flowstone[serve]'` brings.
"""
