"""The lifecycles of the documents: each a table of states, events, guards and actions, with its properties.

``NAME.py`` has the theory, the guards, the actions and the table. Its states, events and record are in
``NAME_model.py``, its properties in ``NAME_properties.py``, which know neither the actions nor the table. The modules
of a small lifecycle are one file.
"""
