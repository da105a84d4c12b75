"""What a run keeps on disk, and what is made of what another run has kept."""
