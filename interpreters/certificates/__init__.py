"""Certificates: what a check has shown, of which code, and tests written from counterexamples."""
