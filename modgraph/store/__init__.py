"""What is kept on disk: run folders, their records, checkpoints."""
