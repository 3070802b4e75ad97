"""Checks graphs against their declarations."""
