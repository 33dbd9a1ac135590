"""What every test run has in common."""

from hypothesis import settings

settings.register_profile("lifefold", derandomize=True, deadline=None, max_examples=100, print_blob=True)
settings.load_profile("lifefold")
