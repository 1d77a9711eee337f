"""`flowstone.version`: the release whose interface is followed, flowstone's own and that of graphs."""

from flowstone.framework.process.versions import (
    COMPILER_VERSION,
    FLOWSTONE_VERSION,
    GIT_VERSION,
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_CONSUMER,
    GRAPH_DEF_VERSION_MIN_PRODUCER,
    VERSION,
)
