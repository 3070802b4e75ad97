"""Plans many trainings of one spec, and runs them."""
