"""The interfaces of the source documents, as thin facades over the lifecycles: calls in, exceptions out, no rules."""
