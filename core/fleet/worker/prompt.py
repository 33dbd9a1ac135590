"""The prompt of a session: the task, the failure of an earlier attempt, and operator messages."""

from typing import Final

from lifefold.core.lifecycles.task import Brief

CONTINUED: Final = (
    "Your last session was interrupted. What you have done so far is still in this folder; go on from there."
)
"""What a session is told that goes on with the work of an earlier one."""

ANEW: Final = (
    "An earlier session at this task has ended, and its conversation cannot be continued: this is a new one. What that"
    " session has done is still in this folder; look at it first, and go on from there."
)
"""What the first session of another conversation is told, in place of ``CONTINUED``: it remembers nothing."""


def compose(brief: Brief, messages: tuple[str, ...], *, continued: bool, repeated: int = 0, anew: bool = False) -> str:
    """Return the text of a prompt.

    ``continued``: an earlier session at the same task was interrupted. ``anew``: its conversation is lost, and this
    session begins another one. ``repeated`` counts the oldest messages that an
    earlier session of this agent had and did not complete with: it may have acted on them.
    """
    parts = [after_failure(brief.prompt, brief.failure)]
    if continued:
        parts.append(ANEW if anew else CONTINUED)
    if repeated:
        first = "first" if repeated == 1 else f"first {repeated}"
        parts.append(f"An earlier session had the {first} of your messages too; it was not completed.")
    if messages:
        parts.append(_listed("You have messages:", messages))
    return "\n\n".join(parts)


def steered(messages: tuple[str, ...], *, interrupted: bool) -> str:
    """Return the text of another prompt in a running session. ``interrupted``: it has ended the turn of the agent."""
    went = "Your turn was interrupted. What you have done so far is as you left it.\n\n" if interrupted else ""
    return f"{went}{_listed('You have messages:', messages)}\n\nGo on with your task."


def after_failure(prompt: str, failure: str) -> str:
    """Return the prompt of a task, with the failure of an earlier attempt, if there was one."""
    return f"{prompt}\n\nAn earlier attempt at this task failed: {failure}" if failure else prompt


def with_messages(prompt: str, messages: tuple[str, ...]) -> str:
    """Return the prompt of a task, with the operator messages for the task."""
    return f"{prompt}\n\n{_listed('There are messages about this task:', messages)}" if messages else prompt


def _listed(head: str, messages: tuple[str, ...]) -> str:
    return "\n".join([head, *(f"- {message}" for message in messages)])
