"""What an agent is told: the task, what went wrong before, and what people want it to know."""

from lifefold.core.task import Brief


def compose(brief: Brief, letters: tuple[str, ...], *, continued: bool) -> str:
    """Return the text of a prompt; ``continued`` if an earlier session at the same task was interrupted."""
    parts = [brief.prompt]
    if brief.failure:
        parts.append(f"An earlier attempt at this task failed: {brief.failure}")
    if continued:
        parts.append(
            "Your last session was interrupted. What you have done so far is still in this folder; go on from there."
        )
    if letters:
        parts.append("\n".join(["You have messages:", *(f"- {letter}" for letter in letters)]))
    return "\n\n".join(parts)
