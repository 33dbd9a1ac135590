"""The formats of a machine: two languages for pictures (Mermaid, Graphviz), two for execution (SCXML, XState)."""
