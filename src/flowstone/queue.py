"""`flowstone.queue`: queues between steps."""

from flowstone.ops.queues.queues import (
    FIFOQueue,
    PaddingFIFOQueue,
    PriorityQueue,
    QueueBase,
    RandomShuffleQueue,
)
