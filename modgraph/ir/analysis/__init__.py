"""Derived facts of graphs."""
