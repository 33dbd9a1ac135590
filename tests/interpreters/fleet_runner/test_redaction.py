"""Secrets: what is taken for one, and that no text of a record has its value."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.fleet_runner.redaction import LEAST_CHARS, NO_SECRETS, Secrets, is_secret

VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=LEAST_CHARS, max_size=40).filter(
    lambda value: not value.isdigit() and not value.startswith("/") and value.isascii()
)


@pytest.mark.parametrize(
    "name",
    "ANTHROPIC_API_KEY OPENAI_API_KEY GITHUB_TOKEN db_password AWS_SECRET_ACCESS_KEY GH_PAT PGPASSWORD KEY_PASSPHRASE "
    "CLAUDE_CODE_OAUTH_TOKEN GOOGLE_APPLICATION_CREDENTIALS SESSION_COOKIE MYSQL_PWD".split(),
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    """Whatever its case."""
    assert is_secret(name)


@pytest.mark.parametrize("name", ["PATH", "HOME", "SSH_AUTH_SOCK", "AUTHOR", "PWD", "OLDPWD", "HTTPS_PROXY", "PATIENT"])
def test_other_variables_are_no_secrets(name: str) -> None:
    """Unless the fleet file says so."""
    assert not is_secret(name)
    assert is_secret(name, [f"{name[:3]}*"])


@given(VALUES, st.text(max_size=60), st.text(max_size=60))
def test_no_text_has_the_value_of_a_secret(value: str, before: str, after: str) -> None:
    """The name stands for it, wherever it is."""
    hidden = Secrets([("THE_TOKEN", value)]).hidden(f"{before}{value}{after}")
    assert "[redacted THE_TOKEN]" in hidden
    assert hidden.replace("[redacted THE_TOKEN]", "").count(value) <= (before + after).count(value)


@given(VALUES, st.binary(max_size=80).map(lambda noise: noise.decode("latin-1")), st.integers(1, 200))
def test_an_end_that_was_cut_off_has_no_part_of_a_value(value: str, noise: str, size_bytes: int) -> None:
    """A value of which the beginning was cut off is not known any more: what may be the rest of it is left out."""
    secrets = Secrets([("THE_TOKEN", value)])
    whole = f"{value}\n{noise}".encode()
    size_bytes += secrets.longest_bytes
    end = whole[-size_bytes:]
    assert value[len(value) // 2 :] + "\n" not in secrets.quotable(end, size_bytes) or len(end) < size_bytes


def test_the_longer_of_two_values_goes_first() -> None:
    """A value that begins as another one does leaves nothing of itself."""
    secrets = Secrets([("A_KEY", "secret"), ("B_KEY", "secret-and-more")])
    assert secrets.hidden("secret-and-more, secret") == "[redacted B_KEY], [redacted A_KEY]"


def test_each_long_line_of_a_private_key_is_a_secret() -> None:
    """The last line that a program has printed may be one of them."""
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nshort\n-----END KEY-----\n"
    secrets = Secrets([("SIGNING_KEY", key)])
    assert secrets.hidden("MIIEvQIBADANBgkqhkiG") == "[redacted SIGNING_KEY]"
    assert secrets.hidden("short") == "short"


def test_the_password_of_an_address_is_a_secret_whatever_the_variable_is_called() -> None:
    """The rest of the address is none."""
    secrets = Secrets([("HTTPS_PROXY", "http://me:hunter22@proxy:3128")])
    assert secrets.hidden("no route to http://me:hunter22@proxy:3128") == (
        "no route to http://me:[redacted HTTPS_PROXY]@proxy:3128"
    )


def test_values_that_mean_nothing_and_paths_of_files_are_left(tmp_path: Path) -> None:
    """Otherwise a digit, a word or a folder would be redacted everywhere."""
    path = tmp_path / "key.pem"
    path.touch()
    secrets = Secrets([("MAX_TOKENS", "200000"), ("USE_KEYS", "1"), ("A_TOKEN", "enabled"), ("KEY_FILE", str(path))])
    text = f"1 of 200000 is enabled in {path}"
    assert secrets.hidden(text) == text == NO_SECRETS.hidden(text)
