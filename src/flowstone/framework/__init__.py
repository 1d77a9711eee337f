"""The vocabulary: types, shapes, names, declarations, graphs. It imports from no other room."""
