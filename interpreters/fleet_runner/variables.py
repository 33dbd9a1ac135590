"""The environment of the processes of a fleet.

A process gets few variables of the runner: those that programs need (``PASSED``), and those in ``env_pass`` of the
fleet file. The values of ``env`` replace them.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lifefold.interpreters.adapters import AdapterError, adapter_of, login_of
from lifefold.interpreters.adapters.registry import SHIPPED
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.model import Agent, Service
from lifefold.interpreters.fleet_runner.redaction import Secrets, is_secret, matches

PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TERMINFO*", "COLORTERM",
    "NO_COLOR", "TMPDIR", "TMP", "TEMP", "XDG_*", "EDITOR", "VISUAL", "PAGER",
    "SSH_AUTH_SOCK", "GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL",
    "EMAIL", "DBUS_SESSION_BUS_ADDRESS",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
    "LD_LIBRARY_PATH", "DYLD_*", "NIX_*", "HOMEBREW_PREFIX", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_*",
    "PYENV_ROOT", "UV_CACHE_DIR", "NVM_DIR", "NODE_PATH", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME",
)  # fmt: skip
"""The variables of the runner that every process gets: names and globs; a glob passes no secret."""

LOGIN: Final = {name: login_of(each).passed for name, each in SHIPPED.items() if login_of(each).passed}
"""The variables that an agent program gets besides, by its kind: those by which it logs in, and finds its settings."""

_PLACES: Final = ("HOME", "XDG_*")
"""The variables of the folders in which programs keep settings and conversations."""

MOST_NAMES: Final = 4
"""The most variables in a hint."""

_LOGIN: Final = re.compile(
    r"\b(?:please|must|to) log ?in\b|[ /]login\b|logged (?:in|out)|api[ _-]?key|unauthori[sz]ed|authenticat"
    r"|credential|\b401\b",
    re.IGNORECASE,
)
"""Output of agents that are not logged in."""

_OF_AGENTS: Final = ("ANTHROPIC_*", "CLAUDE_*", "OPENAI_*", "CODEX_*", "GEMINI_*", "*_API_KEY")
"""The variables by which known agents log in; a hint names them first."""


def environment(
    around: Mapping[str, str], of: Agent | Service | Fleet, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a process of an agent, of a service, or (of the fleet) of a verification.

    ``around`` is the environment of the runner. ``own`` are variables of lifefold, which nothing replaces.
    """
    names = (*of.env_pass, *_login(of))
    chosen = {name: value for name, value in around.items() if _is_passed(name, names)}
    return {**chosen, **of.env, **(own or {})}


def _login(of: Agent | Service | Fleet) -> tuple[str, ...]:
    """Return the variables of an agent's program; none of an adapter that is no longer installed."""
    if not isinstance(of, Agent) or of.program is None:
        return ()
    try:
        return login_of(adapter_of(of.program.adapter)).passed
    except AdapterError:
        return ()


def of_program(agent: Agent) -> dict[str, str]:
    """Return the variables in ``env`` by which the agent's program finds its settings and conversations; no secrets."""
    names = (*_login(agent), *_PLACES)
    return {name: value for name, value in agent.env.items() if matches(name, names) and not is_secret(name)}


def login_secrets(agent: Agent) -> dict[str, str]:
    """Return the secrets in ``env`` by which the agent's program logs in. No screen may have them."""
    return {name: value for name, value in agent.env.items() if name in _login(agent) and is_secret(name)}


def _is_passed(name: str, named: Iterable[str]) -> bool:
    return matches(name, named) or (matches(name, PASSED) and not is_secret(name))


def untold(fleet: Fleet, around: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each known agent whose login variables are set and not passed on."""
    for of in fleet.agents:
        patterns = _LOGS_IN.get(os.path.basename(of.command[0]) if of.command else "", ())  # noqa: PTH119 - no path is made
        given = environment(around, of)
        names = sorted(name for name in around if name not in given and is_secret(name) and matches(name, patterns))
        if names:
            listed = ", ".join(f'"{name}"' for name in names)
            lacks = " or ".join(names)
            yield f"agent {of.name} does not get {lacks}; if it logs in with that, add env_pass = [{listed}]"


_LOGS_IN: Final = {
    "claude": ("ANTHROPIC_*", "CLAUDE_*"),
    "codex": ("OPENAI_*", "CODEX_*"),
    "aider": ("OPENAI_*", "ANTHROPIC_*", "GEMINI_*", "DEEPSEEK_*", "OPENROUTER_*"),
}
"""The variables by which known programs log in."""


def hint(around: Mapping[str, str], of: Agent | Service, said: str) -> str:
    """Return the variables that an agent may lack to log in; empty if it fails for another reason.

    ``said`` is the end of its output. The variables are secrets of the runner that the agent did not get.
    """
    given = environment(around, of)
    held_back = sorted(name for name, value in around.items() if value and name not in given and is_secret(name))
    if not held_back or not _LOGIN.search(said):
        return ""
    held_back.sort(key=lambda name: (name not in said, not matches(name, _OF_AGENTS)))
    names = held_back[:MOST_NAMES]
    which = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} set where lifefold runs, and not passed on"
    return f"{which}; name those that it needs in env_pass of the agent, in the fleet file"


def secrets_of(fleet: Fleet, around: Mapping[str, str]) -> Secrets:
    """Return the secrets that the processes of a fleet can know."""
    return Secrets(variables_of(fleet, around), fleet.redact)


def variables_of(fleet: Fleet, around: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variables of the runner's environment and of the fleet file, with their values."""
    tables = (around, fleet.env, *(each.env for each in fleet.agents), *(each.env for each in fleet.services))
    return (variable for table in tables for variable in table.items())
