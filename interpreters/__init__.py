"""The worlds: everything that touches the outside."""
