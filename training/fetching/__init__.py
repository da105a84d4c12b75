"""`tf-transformer data`: corpora of a catalogue, downloaded, checked and split."""
