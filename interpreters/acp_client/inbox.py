"""The messages for a running session: files of the runner, each taken once, in the order of their numbers."""

import re
from pathlib import Path
from typing import Final

import msgspec

_NAME: Final = re.compile(r"[0-9]{5,9}\.json")
"""The name of a message's file; a draft has another one."""

MESSAGE_BYTES: Final = 1 << 20
"""The longest file of a message: a mailbox has less in all."""


class Message(msgspec.Struct, frozen=True):
    """A message of an operator. An urgent one ends the present turn."""

    number: int
    text: str
    urgent: bool = False


class Inbox:
    """The messages of a folder; none without a folder. ``waiting`` has those that were not taken yet."""

    def __init__(self, folder: str) -> None:
        """Take the folder, which may be missing until the first message; empty for none."""
        self._folder: Final = Path(folder) if folder else None
        self._seen: set[int] = set()
        self.waiting: tuple[Message, ...] = ()

    @property
    def is_urgent(self) -> bool:
        """Whether an urgent message waits."""
        return any(each.urgent for each in self.waiting)

    def look(self) -> None:
        """Read the files that are new."""
        found = [] if self._folder is None else [self._read(each) for each in self._files(self._folder)]
        new = [each for each in found if each is not None and each.number not in self._seen]
        self._seen |= {each.number for each in new}
        self.waiting = (*self.waiting, *sorted(new, key=lambda each: each.number))

    def take(self) -> tuple[Message, ...]:
        """Return all messages that wait; none of them waits any longer."""
        self.look()
        taken, self.waiting = self.waiting, ()
        return taken

    def _files(self, folder: Path) -> list[Path]:
        try:
            return [
                each for each in folder.iterdir() if _NAME.fullmatch(each.name) and int(each.stem) not in self._seen
            ]
        except OSError:
            return []

    def _read(self, file: Path) -> Message | None:
        """Return the message of a file; None for another kind of file, which only a process of the agent can make."""
        try:
            with file.open("rb") as opened:
                message = msgspec.json.decode(opened.read(MESSAGE_BYTES), type=Message)
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        return message if message.number == int(file.stem) else None
