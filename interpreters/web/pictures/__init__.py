"""The pictures of all machines and systems, drawn by ``make pages``, so that looking needs no Graphviz."""
