"""Assaults: hostile specs, kills, damaged files. A hundredth of each runs with every suite, the whole with --slow."""
