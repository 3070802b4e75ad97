"""The language of modgraph as grammars: `modgraph.lark` for specs, `graph.lark` for the text form of graphs."""
