"""Files on disk: run folders, their records, checkpoints."""
