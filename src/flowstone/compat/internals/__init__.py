"""What only TensorFlow's internal modules have, and programs import from there all the same.

A file bears the name of the module below `tensorflow.python` whose names it holds: `framework_ops` is
`tensorflow.python.framework.ops`. Names that are public, or lie in a room of flowstone under the same name,
are not here: `compat.module_paths` finds those.
"""
