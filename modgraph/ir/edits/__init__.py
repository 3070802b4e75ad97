"""Changes of a graph as values."""
