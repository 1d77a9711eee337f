"""From LLVM's text to functions that Python calls: the text's parts, compilation, the cache, the host."""
