"""The address of a log on a server: its parts, its passwords, which nothing shows, and the pointer that has it."""

import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.store import NotAStore, create_log, peek_log
from lifefold.interpreters.store.address import Address, hidden, is_address, read_address, secrets_of
from lifefold.interpreters.store.pointer import address_of, announce, write_pointer


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me@db:5433/agents?log=fleet", "postgresql://me@db:5433/agents?log=fleet"),
        ("postgres://db/agents", "postgresql://db/agents?log=lifefold"),
        (
            "postgresql:///agents?host=/run/postgresql&log=a.b-2",
            "postgresql:///agents?host=/run/postgresql&log=a.b-2",
        ),
        ("postgresql://a,b:2/x?sslmode=verify-full", "postgresql://a,b:2/x?sslmode=verify-full&log=lifefold"),
        ("postgresql://me:word@db/x?password=word&sslpassword=word", "postgresql://me@db/x?log=lifefold"),
    ],
)
def test_an_address_is_shown_as_it_was_typed_without_passwords(text: str, shown: str) -> None:
    address = read_address(text)
    assert str(address) == shown
    assert read_address(str(address)) == address
    assert "word" not in repr(address) + repr((address,))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=8, max_size=20))
def test_a_password_reaches_libpq_and_nothing_else(password: str) -> None:
    word = f"{password}-secret"
    address = read_address(f"postgresql://me:{quote(word, safe='')}@db/x?log=fleet")
    assert secrets_of(address) == {"password": word}
    assert word not in f"{address!r} {address} {address.url}"
    assert secrets_of(address.named("other")) == {"password": word}


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:pass/word@db/x",
        "postgresql://me:pass?word@db/x",
        "postgresql://me:pass#word@db/x",
        "postgresql://db/x?log",
        "postgresql://db/x?log=public",
        "postgresql://db/x?log=pg_word",
        'postgresql://db/x?log="; DROP',
        f"postgresql://db/x?log={'a' * 64}",
        "mysql://db/x",
    ],
)
def test_an_unusable_address_is_refused_without_a_part_of_it(text: str) -> None:
    """A password may be anywhere in it."""
    with pytest.raises(NotAStore, match="accepted: ") as refused:
        read_address(text)
    assert "word" not in str(refused.value).replace("a password", "")


def test_a_message_with_typed_words_hides_their_passwords() -> None:
    typed = "unrecognized arguments: postgresql://me:se@cret@db/x?password=secret&log=a --json"
    assert hidden(typed) == "unrecognized arguments: postgresql://me:***@db/x?password=***&log=a --json"
    assert hidden("see https://example.org/a:b@c") == "see https://example.org/a:b@c"


def test_a_pointer_has_the_address_and_no_password(tmp_path: Path) -> None:
    path, address = tmp_path / "fleet.db", read_address("postgresql://me:secret@db/x?log=fleet")
    assert address_of(path) is None
    announce(path, address)
    assert address_of(path) == address
    write_pointer(path, address)
    assert address_of(path) == address
    assert path.read_text() == "lifefold log on a server\npostgresql://me@db/x?log=fleet\n"
    assert path.stat().st_mode & 0o077 == 0
    path.unlink()
    assert address_of(path) is None


def test_a_log_in_a_file_is_no_pointer(tmp_path: Path) -> None:
    create_log(tmp_path / "a.db", {"name": "a"}).close()
    (tmp_path / "other").write_text("postgresql://db/x")
    assert (address_of(tmp_path / "a.db"), address_of(tmp_path / "other"), address_of(tmp_path)) == (None, None, None)
    with peek_log(tmp_path / "a.db") as store:
        assert store.made_with() == {"name": "a"}


def test_a_damaged_pointer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("lifefold log on a server\nwhatever")
    with pytest.raises(NotAStore, match="the address of the log cannot be read"):
        peek_log(tmp_path / "a.db")


def test_a_text_is_an_address_by_its_scheme() -> None:
    assert is_address("postgres://db/x")
    assert not is_address("fleet.db")
    assert Address("postgresql://db/x", "a") != Address("postgresql://db/x", "b")


def test_without_psycopg_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("lifefold.interpreters.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    write_pointer(tmp_path / "a.db", read_address("postgresql://db/x"))
    with pytest.raises(NotAStore, match=r"pip install 'lifefold\[postgres\]'"):
        peek_log(tmp_path / "a.db")
