"""What a check, a crash search and a simulation report: findings with their traces, as text, HTML and JSON."""
