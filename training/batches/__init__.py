"""Sentence pairs to the batches of an epoch: ids, lengths, buckets, order."""
