"""Graphs as their authors wrote them: definitions, and calls of them."""
