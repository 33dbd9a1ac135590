"""The interpreters: all code that touches the outside world."""
