"""The playground: an editor for specs as a folder for any static server, with modgraph running in the browser."""
