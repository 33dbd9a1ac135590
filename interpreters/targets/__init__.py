"""The lifecycles and systems that are known by name, with the configuration that each is checked in."""
