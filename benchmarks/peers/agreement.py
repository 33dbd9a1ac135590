"""The check that the peers are the same machine: they get the same tapes, and are compared after each event."""

from random import Random
from types import ModuleType

from benchmarks.peers import PEERS
from benchmarks.peers.ledger import UNLIMITED
from benchmarks.peers.tape import SymbolicEvent, cycles

WEIGHTED_EVENTS: dict[SymbolicEvent, int] = {
    ("worktree_ready",): 20,
    ("prompt_ready", "text"): 40,
    ("session_started", 1): 20,
    ("session_exited", "success"): 10,
    ("session_exited", "error"): 20,
    ("session_exited", "timeout"): 20,
    ("urgent_message",): 10,
    ("grace_exceeded",): 10,
    ("backoff_elapsed",): 40,
    ("operator_stop",): 2,
    ("fatal_error", "msg"): 2,
}

Observation = tuple[object, ...]


def shown(peer: ModuleType, machine: object) -> Observation:
    """Return the machine's state and counters, without its effects."""
    ledger = peer.ledger_of(machine)
    counters = (ledger.consecutive_errors, ledger.total_errors, ledger.session_seq, ledger.prompt, ledger.backoff_ms)
    return (peer.state_of(machine), *counters)


def observe(peer: ModuleType, machine: object) -> Observation:
    """Return the machine's state, counters and effects, and clear the effects."""
    ledger = peer.ledger_of(machine)
    effects = tuple(ledger.effects)
    ledger.effects.clear()
    return (*shown(peer, machine), *effects)


def trace(peer: ModuleType, tape: list[SymbolicEvent], max_total_errors: int) -> list[Observation]:
    """Return the peer's observation after each event of the tape, also after rejected events."""
    machine = peer.make(max_total_errors)
    observations: list[Observation] = []
    for method, args in peer.compile_tape(machine, tape):
        try:
            method(*args)
        except peer.REJECTION:
            observations.append(("rejected", *observe(peer, machine)))
        else:
            observations.append(observe(peer, machine))
    return observations


def agreed(tape: list[SymbolicEvent], max_total_errors: int) -> list[Observation]:
    """Return the common observations of all peers after each event of the tape; fail if two peers differ."""
    first, *others = (trace(peer, tape, max_total_errors) for peer in PEERS.values())
    for name, other in zip(list(PEERS)[1:], others, strict=True):
        for event, expected, actual in zip(tape, first, other, strict=True):
            assert actual == expected, f"{event}: {name} has {actual}, {next(iter(PEERS))} has {expected}"
    return first


def check() -> None:
    """Walk all peers along a long legal tape, and along random ones with every event in every state."""
    tape = cycles(100)
    trodden = agreed(tape, UNLIMITED)
    assert all(state != "rejected" for state, *_ in trodden)
    print(f"all peers agree after each of {len(tape):,} events; in the end: {trodden[-1][:4]}")

    random = Random(1)  # noqa: S311 - chance, not secrecy
    events, weights = list(WEIGHTED_EVENTS), list(WEIGHTED_EVENTS.values())
    met: set[tuple[object, SymbolicEvent]] = set()
    for _ in range(400):
        walk = random.choices(events, weights, k=60)
        state: object = "Initializing"
        for event, (first, *rest) in zip(walk, agreed(walk, random.choice((3, 20))), strict=True):
            met.add((state, event))
            state = rest[0] if first == "rejected" else first
    assert len(met) == 8 * len(events), "the walks must meet every event in every state"
    print(f"and on random walks through all {len(met)} pairs of state and event")
