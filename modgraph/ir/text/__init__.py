"""Programs as text, and back."""
