"""Parallel text: read, cleaned, mixed and split, and the tokenizers learnt from it."""
