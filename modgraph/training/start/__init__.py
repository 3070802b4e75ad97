"""The weights that a training starts from: those of another run, or of a file by a map of names."""
