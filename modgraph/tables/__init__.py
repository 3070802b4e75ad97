"""Reads many runs, and prints them as tables and pages. Needs no torch."""
