"""The documents' own interfaces, thin shells over the lifecycles: calls in, exceptions out, no rule in between."""
