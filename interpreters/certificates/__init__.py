"""Certificates: the result of a check with the code that it is about; and tests from counterexamples."""
