"""Self-contained HTML pages: graphs with their specs, and sections of data. `docs/visualize.md` describes them."""
