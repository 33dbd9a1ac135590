"""The handler that gives a running session a message: a file in the inbox of the session, named after its number.

The session takes the files in the order of their numbers, each once. So a file that is written again, after a crash of
the runner, changes nothing. The inbox belongs to the session that ran at the decision, and no later session reads it.
"""

from typing import Final

import msgspec

from lifefold.core.lifecycles import session
from lifefold.effects import SteerSession
from lifefold.interpreters.engine import EffectContext, handles
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.fleet_runner.specs import write_whole


class Steersman:
    """Performs ``SteerSession``."""

    def __init__(self, folder: FleetFolder, operator: Notices) -> None:
        """Take the folder of the sessions, and the notices."""
        self._folder: Final = folder
        self._operator: Final = operator

    @handles(SteerSession)
    async def steer_session(self, effect: SteerSession, context: EffectContext) -> None:
        """Put a message into the inbox of the session. One that cannot be put there waits for the next prompt."""
        agent, attempt = context.within.key, context.within.record(session.machine.name).attempt
        file = self._folder.inbox(agent, attempt) / f"{effect.number:05d}.json"
        try:
            write_whole(file, msgspec.json.encode(effect).decode())
        except OSError as error:
            self._operator.tell(agent, f"its session does not get message {effect.number}: {error}")
