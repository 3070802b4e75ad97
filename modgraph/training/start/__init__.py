"""The first weights of a training: those of another run, or of a file by a map of names."""
