"""What a machine can be written in: two languages to draw (Mermaid, Graphviz), two to run (SCXML, XState)."""
