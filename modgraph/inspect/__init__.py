"""Reads graphs and declarations for people: costs, the reference, editors. Needs no torch."""
