"""The files of ``lifefold demo``, a repository with a fleet, and of ``lifefold init``, a fleet file with an agent."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import msgspec

from lifefold.interpreters.fleet_file.command import literal

GIT_TIMEOUT_SECONDS = 60

_HERE = files("lifefold.interpreters.demo")
_COMPILED = "__pycache__/"
"""Compiled Python files; unless git ignores them, agents commit them, and their merges conflict."""

_IGNORED = f".lifefold/\n{_COMPILED}\n"


class ScaffoldError(Exception):
    """A file or folder is in the way. Nothing was overwritten; the message has the obstacle and the remedy."""


class Written(msgspec.Struct, frozen=True):
    """The files of ``write_init``, with ``notes`` for its user, a sentence each."""

    fleet_file: Path
    files: tuple[Path, ...]
    repository: Path
    notes: tuple[str, ...]


def write_demo(folder: Path) -> Path:
    """Write the demonstration into an empty or new folder, and return its fleet file.

    The folder becomes a git repository with one commit: a Python package whose functions are missing, the agents'
    program and the fleet file. Raises ``ScaffoldError``.
    """
    folder = _plain(folder)
    _refuse_unless(not _entries(folder), f"{folder} is not empty: name an empty or new folder")
    project = tomllib.loads(_packaged("project.toml"))
    python = sys.executable or "python3"
    fleet = _filled(
        _packaged("fleet.toml"),
        PYTHON=python,
        PYTHON_ARGUMENT=literal(python),
        STATE=str(folder / ".lifefold" / "demo-attempts"),
    )
    own = {
        "fleet.toml": fleet,
        "agent.py": _packaged("agent.py"),
        "answers.json": json.dumps(project["answers"], indent=1),
    }
    _write(folder, project["files"] | own)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _identify(folder)
    _git(folder, "add", "--all")
    _commit(folder, "A package whose functions are missing")
    return folder / "fleet.toml"


def write_init(folder: Path) -> Written:
    """Write ``fleet.toml`` and ``agent.py``, ready to run, into a folder; make it a git repository if it is in none.

    In an existing repository nothing is added or committed; if it does not ignore ``__pycache__/``, its
    ``info/exclude`` gets that rule. A new repository gets a first commit of the files, because agents work on committed
    files. Raises ``ScaffoldError``, before it writes anything, if one of the files exists.
    """
    folder = _plain(folder)
    for name in ("fleet.toml", "agent.py"):
        _refuse_unless(not os.path.lexists(folder / name), f"{folder / name} is there already, and is not overwritten")
    others = _entries(folder)
    top = _repository_around(folder)
    contents = {"fleet.toml": _initial_fleet(folder, top or folder), "agent.py": _packaged("agent.py")}
    if top is None and ".gitignore" not in others:
        contents[".gitignore"] = _IGNORED
    _write(folder, contents)
    notes = _notes_on(top) if top else _make_repository(folder, list(contents), others)
    notes += _ignore_compiled(top or folder)
    written = tuple(folder / name for name in contents)
    return Written(folder / "fleet.toml", written, top or folder, tuple(notes))


def _plain(folder: Path) -> Path:
    """Return the absolute path without ``..``: it is shown to people, and its last part names a fleet."""
    return Path(os.path.abspath(folder))  # noqa: PTH100  # resolve() would also follow symbolic links


def _initial_fleet(folder: Path, repository: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder.name).strip("-_")[:64] or "fleet"
    python = "python3" if shutil.which("python3") else literal(sys.executable)
    relative = os.path.relpath(repository, folder.resolve())
    return _filled(_packaged("init.toml"), NAME=name, REPOSITORY=relative, PYTHON=python)


def _notes_on(repository: Path) -> list[str]:
    branch = _git(repository, "symbolic-ref", "--quiet", "--short", "HEAD", check=False).stdout.strip()
    where = f"This is inside the git repository {repository}, on branch {branch or '(none)'}"
    notes = [f"{where}: agents work on it, and merge into its branch. For a separate one, choose a folder outside it."]
    if _git(repository, "rev-parse", "--quiet", "--verify", "HEAD", check=False).returncode:
        notes.append(
            f"The repository {repository} has no commit yet: make one, because agents work on committed files."
        )
    return notes


def _ignore_compiled(repository: Path) -> list[str]:
    """Have git ignore compiled Python files in a repository and its worktrees; return a note if that was needed."""
    if _git(repository, "check-ignore", "--quiet", f"{_COMPILED}x", check=False).returncode == 0:
        return []
    exclude = repository / _git(repository, "rev-parse", "--git-path", "info/exclude").stdout.strip()
    try:
        exclude.parent.mkdir(parents=True, exist_ok=True)
        before = exclude.read_text(encoding="utf-8") if exclude.exists() else ""
        exclude.write_text(f"{before}{'' if before.endswith(chr(10)) or not before else chr(10)}{_COMPILED}\n")
    except (OSError, UnicodeDecodeError) as error:
        return [f"Add {_COMPILED} to {repository / '.gitignore'} and commit that, or merges conflict: {error}"]
    shared = f"for other clones add it to {repository / '.gitignore'} and commit that"
    return [f"{_COMPILED} is now ignored by {exclude}, because compiled files conflict in merges; {shared}."]


def _make_repository(folder: Path, names: list[str], others: set[str]) -> list[str]:
    _git(folder, "init", "--quiet", "--initial-branch=main")
    if _git(folder, "var", "GIT_COMMITTER_IDENT", check=False).returncode:
        _identify(folder)
    _git(folder, "add", "--", *names)
    _commit(folder, "A fleet of agents")
    notes = [f"{folder} was in no git repository, so it is one now, with a first commit."]
    if others:
        notes.append("Earlier files of the folder are not committed: commit what your agents are to see.")
    return notes


def _repository_around(folder: Path) -> Path | None:
    found = _git(folder, "rev-parse", "--show-toplevel", check=False)
    if found.returncode == 0:
        return Path(found.stdout.strip())
    inside = _git(folder, "rev-parse", "--git-dir", check=False)
    _refuse_unless(inside.returncode != 0, f"{folder} is in a git repository, but not in its working tree")
    return None


def _identify(folder: Path) -> None:
    """Give a repository an identity of its own, so that commits do not need the user's settings."""
    for key, value in (("user.name", "lifefold"), ("user.email", "lifefold@localhost"), ("commit.gpgSign", "false")):
        _git(folder, "config", key, value)


def _commit(folder: Path, message: str) -> None:
    # The hooks and keys of the user do not apply to a commit that no user makes.
    plain = ("-c", f"core.hooksPath={os.devnull}", "-c", "commit.gpgSign=false")
    _git(folder, *plain, "commit", "--quiet", "--message", message)


def _git(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    # Within a git hook these variables would direct git to another repository.
    env = {
        name: value for name, value in os.environ.items() if name not in {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"}
    }
    git = shutil.which("git")
    if git is None:
        message = "git is not on PATH; install it"
        raise ScaffoldError(message)
    try:
        done = subprocess.run(  # noqa: S603 - a list of arguments, no shell
            [git, *arguments],
            cwd=folder,
            env=env,
            check=False,
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        message = f"git {arguments[0]} did not end within {GIT_TIMEOUT_SECONDS} s"
        raise ScaffoldError(message) from error
    _refuse_unless(not check or done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done


def _packaged(name: str) -> str:
    return _HERE.joinpath(name).read_text(encoding="utf-8")


def _filled(template: str, **values: str) -> str:
    """Replace each name between @ signs in a template by its value, as a TOML string."""
    return re.sub("@([A-Z_]+)@", lambda match: json.dumps(values[match[1]], ensure_ascii=False), template)


def _entries(folder: Path) -> set[str]:
    """Return the names in a folder; a missing folder is made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return {path.name for path in folder.iterdir()}
    except OSError as error:
        message = f"cannot use {folder} as a folder: {error.strerror}"
        raise ScaffoldError(message) from error


def _write(folder: Path, contents: Mapping[str, str]) -> None:
    for name, content in contents.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(content)
        except OSError as error:
            message = f"cannot write {path}: {error.strerror}"
            raise ScaffoldError(message) from error


def _refuse_unless(acceptable: bool, message: str) -> None:  # noqa: FBT001 - it reads as a sentence
    if not acceptable:
        raise ScaffoldError(message)
