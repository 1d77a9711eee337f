"""Input by queues: batches, buckets, queue runners and the coordinator of their threads."""
