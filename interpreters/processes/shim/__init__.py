"""The shim: a small supervisor that runs one agent process of one session and outlives the runner that started it.

It runs as a program of its own, ``python -I -S <this folder>/__main__.py RUN_DIRECTORY``, and is not imported by the
runner except for what both must agree on: the names of the files, the clocks and the reading of ``/proc``.

Theory of operation
-------------------

*Whoever holds the lock is the shim.* ``RUN_DIRECTORY/lock`` is held (``flock``) from the first step to the last, so
that anybody can prove whether a shim lives, and a second one refuses. Whoever else gets the lock knows that no shim
lives, and that none will start an agent after a ``cancelled`` mark was left.

*No agent without a record.* The agent is forked first and held at a gate; ``started.json``, with its identity, is on
disk before the gate opens. No ``started.json`` therefore proves that nothing ran. If the shim dies before it opens the
gate, the agent reads the end of the file and goes.

*No record without a death.* ``exit.json`` is written when the agent, its process group and every descendant that got
away from the group (the shim is their subreaper) were killed and reaped. The agent stays a zombie until its group is
gone: while it does, the kernel gives neither its pid nor its group id to anybody else, so that nothing foreign can be
hit.

*The agent never outlives the shim.* On Linux it gets SIGKILL when the shim dies, however that dies.

*A closed pipe says nothing.* Orders and lease deadlines come through a FIFO which the shim itself holds open. A runner
may die and a new one go on; only a deadline that passes ends the agent.

The shim is started for every session: it imports nothing that costs as much as the interpreter itself (``json``,
``re``, ``enum``, ``typing``, ``pathlib``), has one thread and sleeps in one ``poll``.
"""
