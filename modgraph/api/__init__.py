"""What Python programs use: each public name of `modgraph` whose home is no single stage. Commands call the same."""
