"""The shim: a small supervisor that runs the agent process of one session and outlives the runner that started it.

It is a separate program, ``python -I -S <this folder>/__main__.py RUN_DIRECTORY``. The runner imports only the parts
that both must agree on: the names of the files, the clocks and the reading of ``/proc``.

Theory of operation
-------------------

*The process with the lock is the shim.* It holds ``RUN_DIRECTORY/lock`` (``flock``) from its first step to its last. So
any process can prove whether a shim lives, and a second shim refuses to start. A process that gets the lock knows that
no shim lives. If it leaves a ``cancelled`` mark, no shim will start an agent later.

*No agent without a record.* The agent is forked first and held at a gate. ``started.json``, with its identity, is on
disk before the gate opens. Without ``started.json``, therefore, nothing has run. If the shim dies before it opens the
gate, the agent reads the end of the file and exits.

*No record without a death.* ``exit.json`` is written after the agent, its process group and every descendant outside
the group were killed and reaped. The shim is the subreaper of such descendants. The agent stays a zombie until its
group is gone. Until then the kernel reuses neither its pid nor its group id, so no other process can be hit.

*The agent never outlives the shim.* On Linux the kernel sends it SIGKILL when the shim dies, for any reason.

*A closed pipe means nothing.* Orders and lease deadlines come through a FIFO that the shim itself holds open. A runner
may die and another one continue. Only an expired lease ends the agent, or a passed fence. After the fence another host
may have the session. So the fence also cuts short the grace of a session that is being ended.

One shim runs per session. It imports no module that costs as much as the interpreter itself (``json``, ``re``,
``enum``, ``typing``, ``pathlib``), has one thread and sleeps in one ``poll``.
"""
