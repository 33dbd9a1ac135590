"""Crashes of the server, lost connections, partitions and frozen writers: no acknowledged entry is lost or doubled."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import psycopg
import pytest

from conformance import entry
from lifefold.interpreters.store import Batch, Busy, Damaged, Locked
from lifefold.interpreters.store.postgres import (
    Address,
    OutcomeUnknown,
    PostgresStore,
    Timings,
    Unreachable,
    read_address,
)
from postgres_server import PostgresServer
from tcp_proxy import Proxy, proxy

pytestmark = pytest.mark.cluster

QUICK = Timings(connect_s=2, answer_s=1, idle_s=1, stuck_s=1)
COMMIT = b"COMMIT\0"
CRASHES, MOST = 3, 20
TAKEN_S = 20.0
"""The longest time until a log is free, on a busy machine."""


@pytest.fixture
def address(postgres: PostgresServer) -> Address:
    return read_address(postgres.new_log())


@pytest.fixture
def between(postgres: PostgresServer) -> Iterator[Proxy]:
    with proxy(postgres.port) as made:
        yield made


def by(between: Proxy, postgres: PostgresServer, address: Address) -> Address:
    """Return the address of a log by the proxy."""
    return read_address(f"{postgres.url_by(between.port)}?log={address.log}")


def versions(address: Address, stream: str = "a") -> list[int]:
    """Return the versions of a stream; reading all entries verifies their chain."""
    with PostgresStore.peek(address) as store:
        return [each.version for each in anyio.run(store.read) if each.stream == stream]


def opened_when_free(address: Address) -> PostgresStore:
    """Open a log for writing as soon as the server gives it free."""
    until_s = time.monotonic() + TAKEN_S
    while True:
        try:
            return PostgresStore.open(address, timings=QUICK)
        except Locked:
            assert time.monotonic() < until_s


def test_a_crash_of_the_server_loses_and_doubles_no_entry(postgres: PostgresServer, address: Address) -> None:
    """The writer waits for the server, takes the log again, and writes the batch whose answer it did not get."""

    async def write(store: PostgresStore) -> int:
        crashes, written = 0, 0
        async with anyio.create_task_group() as tasks:

            async def crash() -> None:
                nonlocal crashes
                while crashes < CRASHES:
                    await anyio.sleep(0.05)
                    await anyio.to_thread.run_sync(postgres.kill)
                    await anyio.to_thread.run_sync(postgres.start)
                    crashes += 1

            tasks.start_soon(crash)
            while crashes < CRASHES or written < MOST:
                written += 1
                await store.append(Batch((entry("a", written),), {"a": written}))
        assert dict(await store.performed()) == {"a": written}
        return written

    with PostgresStore.create(address, {}) as store:
        written = anyio.run(write, store)
        assert store.is_written()
    assert versions(address) == list(range(1, written + 1))


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_batch_with_an_unknown_outcome_is_written_once(
    postgres: PostgresServer, address: Address, between: Proxy, *, is_committed: bool
) -> None:
    """The connection is lost in the commit, after or before the server has it: the anchor tells which."""
    PostgresStore.create(address, {}).close()
    with PostgresStore.open(by(between, postgres, address)) as store:
        anyio.run(store.append, Batch((entry("a", 1),)))
        (between.cut_after if is_committed else between.cut_before)(COMMIT)
        anyio.run(store.append, Batch((entry("a", 2), entry("b", 1)), {"a": 2}))
        assert between.cuts == 1
        anyio.run(store.append, Batch((entry("a", 3),)))
    assert (versions(address), versions(address, "b")) == ([1, 2, 3], [1])


def test_an_impatient_writer_is_told_that_an_outcome_is_unknown(
    postgres: PostgresServer, address: Address, between: Proxy
) -> None:
    """The same batch again is then acknowledged, and not written twice."""
    PostgresStore.create(address, {}).close()
    with PostgresStore.open(by(between, postgres, address), patient=False) as store:
        between.cut_after(COMMIT)
        with pytest.raises(OutcomeUnknown, match="as a whole or not at all"):
            anyio.run(store.append, Batch((entry("a", 1),)))
        anyio.run(store.append, Batch((entry("a", 1),)))
        anyio.run(store.append, Batch((entry("a", 2),)))
    assert versions(address) == [1, 2]


def test_a_command_with_an_unknown_outcome_is_not_stored_again(
    postgres: PostgresServer, address: Address, between: Proxy
) -> None:
    with PostgresStore.create(address, {}), PostgresStore.peek(by(between, postgres, address)) as beside:
        between.cut_after(COMMIT)
        with pytest.raises(OutcomeUnknown):
            anyio.run(beside.submit, "a", b"one")
        anyio.run(beside.submit, "a", b"two")
        assert [each.envelope for each in anyio.run(beside.commands)] == [b"one", b"two"]


def test_a_reader_reads_on_after_a_lost_connection(postgres: PostgresServer, address: Address, between: Proxy) -> None:
    with PostgresStore.create(address, {}) as store, PostgresStore.peek(by(between, postgres, address)) as beside:
        between.cut()
        anyio.run(store.append, Batch((entry("a", 1),)))
        assert anyio.run(beside.read) == [entry("a", 1)]


def test_a_patient_reader_waits_for_a_server_that_comes_back(postgres: PostgresServer, address: Address) -> None:
    """As the host of a cluster, which has sessions meanwhile; a reader without patience is told."""
    with PostgresStore.create(address, {}) as store:
        anyio.run(store.append, Batch((entry("a", 1),)))

    async def read(patient: PostgresStore) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, postgres.start)
            assert await patient.read() == [entry("a", 1)]

    with PostgresStore.peek(address, patient=True) as patient, PostgresStore.peek(address) as other:
        postgres.kill()
        with pytest.raises(Unreachable, match="nothing of this was acknowledged"):
            anyio.run(other.read)
        anyio.run(read, patient)
        assert anyio.run(other.read) == [entry("a", 1)]


def test_a_partition_is_noticed_by_the_time_limit_of_an_answer(
    postgres: PostgresServer, address: Address, between: Proxy
) -> None:
    """The kernel of the proxy acknowledges all that is sent, and no answer comes."""
    PostgresStore.create(address, {}).close()
    with PostgresStore.open(by(between, postgres, address), timings=QUICK, patient=False) as store:
        anyio.run(store.append, Batch((entry("a", 1),)))
        between.swallow()
        began_s = time.monotonic()
        with pytest.raises(Unreachable):
            anyio.run(store.append, Batch((entry("a", 2),)))
        assert time.monotonic() - began_s < TAKEN_S
        between.heal()
        until_s = time.monotonic() + TAKEN_S
        while versions(address) != [1, 2]:
            assert time.monotonic() < until_s
            with suppress(Busy, Unreachable):  # until the server has ended the earlier session
                anyio.run(store.append, Batch((entry("a", 2),)))


def test_a_patient_writer_waits_for_the_end_of_a_partition(
    postgres: PostgresServer, address: Address, between: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    PostgresStore.create(address, {}).close()

    async def write(store: PostgresStore) -> None:
        between.swallow()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.append, Batch((entry("a", 1),)))
            while "waiting until it can be reached" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                await anyio.sleep(0.02)
            between.heal()

    with PostgresStore.open(by(between, postgres, address), timings=QUICK) as store:
        anyio.run(write, store)
    assert versions(address) == [1]
    assert "the log is reached again" in caplog.text


def test_a_writer_ends_its_earlier_session_that_the_server_still_keeps(
    postgres: PostgresServer, address: Address, between: Proxy
) -> None:
    """It does not wait for the lease of its own earlier session."""
    PostgresStore.create(address, {}).close()
    patient = Timings(connect_s=2, answer_s=1, idle_s=600, stuck_s=600)
    with PostgresStore.open(by(between, postgres, address), timings=patient) as store:
        between.abandon()
        began_s = time.monotonic()
        anyio.run(store.append, Batch((entry("a", 1),)))
        assert time.monotonic() - began_s < TAKEN_S
    assert versions(address) == [1]


def test_a_log_has_one_writer_at_a_time(address: Address) -> None:
    with PostgresStore.create(address, {}) as store:
        with pytest.raises(Locked, match="another lifefold is running"):
            PostgresStore.open(address)
        anyio.run(store.append, Batch((entry("a", 1),)))
    with PostgresStore.open(address) as later:
        anyio.run(later.append, Batch((entry("a", 2),)))


def test_a_writer_that_has_just_lost_its_session_is_waited_for(
    postgres: PostgresServer, address: Address, between: Proxy
) -> None:
    """As after a restart of the server: an operator's command must not replace the runner, which comes back."""
    PostgresStore.create(address, {}).close()

    async def poll(store: PostgresStore) -> None:
        async with anyio.create_task_group() as tasks:
            between.cut()
            is_over = anyio.Event()
            tasks.start_soon(must_be_refused, is_over)
            while not is_over.is_set():
                await anyio.sleep(0.1)
                await store.commands()
        await store.append(Batch((entry("a", 1),)))

    async def must_be_refused(is_over: anyio.Event) -> None:
        with pytest.raises(Locked):
            await anyio.to_thread.run_sync(partial(PostgresStore.open, address, patient=False))
        is_over.set()

    with PostgresStore.open(by(between, postgres, address)) as store:
        anyio.run(poll, store)
    assert versions(address) == [1]


def test_a_frozen_writer_loses_the_log_and_can_never_append(postgres: PostgresServer, address: Address) -> None:
    """The server ends the session of the silent writer; another takes over, and the thawed one is refused."""
    del postgres
    PostgresStore.create(address, {}).close()
    program = str(Path(__file__).parents[3] / "support" / "server_writer.py")
    with subprocess.Popen([sys.executable, program, str(address)], stdout=subprocess.PIPE, text=True) as frozen:
        assert frozen.stdout is not None
        acknowledged = [int(frozen.stdout.readline()) for _ in range(10)]
        frozen.send_signal(signal.SIGSTOP)
        with opened_when_free(address) as store:
            before = [each.version for each in anyio.run(store.read)]
            anyio.run(store.append, Batch((entry("b", 1),)))
            frozen.send_signal(signal.SIGCONT)
            *further, last = frozen.stdout.read().split()
        acknowledged += map(int, further)
    assert last == "Fenced"
    assert before[: len(acknowledged)] == acknowledged
    assert len(before) <= len(acknowledged) + 1
    assert versions(address) == before


def test_a_killed_writer_leaves_the_log_free(postgres: PostgresServer, address: Address) -> None:
    del postgres
    PostgresStore.create(address, {}).close()
    program = str(Path(__file__).parents[3] / "support" / "server_writer.py")
    with subprocess.Popen([sys.executable, program, str(address)], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        acknowledged = [int(killed.stdout.readline()) for _ in range(10)]
        killed.kill()
        acknowledged += map(int, killed.stdout.read().split())
    with opened_when_free(address) as store:
        found = [each.version for each in anyio.run(store.read)]
    assert found[: len(acknowledged)] == acknowledged
    assert len(found) <= len(acknowledged) + 1


def test_a_server_that_has_lost_acknowledged_entries_is_noticed(
    postgres: PostgresServer, address: Address, between: Proxy
) -> None:
    """As after a failover to a standby that did not have them."""
    PostgresStore.create(address, {}).close()
    with PostgresStore.open(by(between, postgres, address)) as store:
        anyio.run(store.append, Batch((entry("a", 1),)))
        before = anyio.run(store.chain).end
        anyio.run(store.append, Batch((entry("a", 2),)))
        between.cut()
        with psycopg.connect(address.url, autocommit=True, options=f"-c search_path={address.log}") as session:
            session.execute("DELETE FROM entries WHERE position = 2")
            anchor = f"{before.entries} {before.link.hex()}"
            session.execute("UPDATE meta SET value = %s WHERE name = 'anchor'", (anchor,))
        with pytest.raises(Damaged, match="the server has 1 entries, and 2 were acknowledged to this writer"):
            anyio.run(store.append, Batch((entry("a", 3),)))
