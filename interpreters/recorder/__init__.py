"""The flight recorder: a log as the record of one run, to replay, to audit, to fork and to compare.

``recording`` folds a log into the worlds after each entry. ``audit`` tells whether a run was allowed. ``forks`` begins
again at an entry. ``parting`` finds where two runs differ. All of them read the written decisions, for any system.
"""
