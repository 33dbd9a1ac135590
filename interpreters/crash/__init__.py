"""The crash search: a runner decides, persists, performs and records, and may crash between any two stages."""
