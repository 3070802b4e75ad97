"""What follows from a graph, for those who read it."""
