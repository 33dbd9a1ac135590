"""What check, views and the command line know by name, and the configuration that each is checked in."""
