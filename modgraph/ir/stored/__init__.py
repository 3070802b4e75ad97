"""Programs and graphs as JSON, and back."""
