"""The style and the script of the desk, which are sent as they are."""
