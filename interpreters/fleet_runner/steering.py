"""The handler that gives a running session a message: a file in the inbox of the session, named after its number.

The session takes the files in the order of their numbers, each once. So a file that is written again, after a crash of
the runner, changes nothing. The inbox belongs to the session that ran at the decision, and no later session reads it.

A session that has taken a message counts as one that has taken all before it. So no file is written while an earlier
one is missing.
"""

from typing import Final

import msgspec

from lifefold.core.fleet.worker import mailbox
from lifefold.core.lifecycles import session
from lifefold.effects import SteerSession
from lifefold.interpreters.engine import EffectContext, handles
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.processes.private import write_whole


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
        box: mailbox.Mailbox = context.within.record(mailbox.machine.name)
        inbox = self._folder.inbox(agent, attempt)
        earlier = [SteerSession(number, box.messages[number - 1]) for number in range(box.taken + 1, effect.number)]
        try:
            for each in (*earlier, effect):
                file = inbox / f"{each.number:05d}.json"
                if each is effect or not file.is_file():
                    write_whole(file, msgspec.json.encode(each).decode())
        except OSError as error:
            self._operator.tell(agent, f"its session does not get message {effect.number}: {error}")
