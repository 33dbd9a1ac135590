"""The client of agents of ``kind = "acp"``: it speaks the Agent Client Protocol, and prints what the agent does.

A session of such an agent is this client, under a shim like any other session. It starts the agent program, begins or
resumes the conversation, sends the prompt, and prints one line of JSON for each fact. The adapter ``acp`` reads these
lines. A crash of the runner touches neither the client nor its pipe, so the conversation goes on, and the next runner
follows the same output. ``python -m lifefold.interpreters.acp_client`` needs the extra ``acp``.
"""
