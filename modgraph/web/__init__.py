"""A trained run as a folder for any static server: a page that runs the model in the browser, and displays its
routing."""
