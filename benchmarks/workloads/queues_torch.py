"""The same batches from a torch DataLoader: an example a `__getitem__`, or whole batches by their indices."""

from shapes import QUEUE_BATCH, examples
from torch import from_numpy
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset

from measuring import report, sustained_seconds

data = TensorDataset(*map(from_numpy, examples(20_000)))


def us(**options):
    loader = DataLoader(data, **options)
    batches = iter(loader)

    def step():
        nonlocal batches
        try:
            next(batches)
        except StopIteration:
            batches = iter(loader)
            next(batches)

    return sustained_seconds(step) / QUEUE_BATCH * 1e6


for name, sampler in (("FIFOQueue", SequentialSampler), ("RandomShuffleQueue", RandomSampler)):
    shuffled = sampler is RandomSampler
    report(f"{name}, enqueue", us(batch_size=QUEUE_BATCH, shuffle=shuffled, drop_last=True), "us/example")
    batches = BatchSampler(sampler(data), QUEUE_BATCH, True)
    report(f"{name}, enqueue_many", us(batch_size=None, sampler=batches), "us/example")
