"""What is measured of a model, and how it adds up over batches and processes."""
