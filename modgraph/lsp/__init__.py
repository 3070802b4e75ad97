"""The language server: what an editor asks about a spec."""
