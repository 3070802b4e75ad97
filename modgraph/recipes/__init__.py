"""YAML that is checked against declarations, with places."""
