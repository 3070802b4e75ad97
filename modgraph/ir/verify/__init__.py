"""Holds graphs against their declarations."""
