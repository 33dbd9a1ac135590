"""The operator's desk: what a fleet shows of its agents' work, as values for the command line and for the web.

Each module reads one kind of evidence: sessions and claims from the log (``history``), the output of a session
(``session_output``), its decoding (``output_lines``), commits and worktrees (``changes``), and verifications
(``verifications``). ``pages`` puts all about one task or one agent together. ``registry`` lists the fleets of this
machine. All of it only reads, except ``registry.noted``.
"""
