"""The operator's desk in a browser: pages, JSON and a stream of fleets' logs, and operator commands through the log.

``FollowedLog`` folds each log once for all browsers (``followed_log``). A page is a struct (``structs``), made of one
moment of a log (``fleet_pages``, ``agent_page``, ``task_page``, ``log_page``, ``timeline``), and sent as JSON or as
HTML (``app``). A write is a command of the command line (``commands``). ``guards`` decides which requests are answered.
"""
