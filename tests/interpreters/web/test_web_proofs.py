"""The pages of machines show the proofs that come with lifefold, and whether each is of the code that runs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lifefold.interpreters.certificates.certificate import read
from lifefold.interpreters.web.machine_pages import machine_page
from lifefold.interpreters.web.machine_structs import Proven
from lifefold.interpreters.web.proofs import Crashed, all_proofs, is_of_this_code, proofs_of
from lifefold.interpreters.web.rendering import html
from web_desk import Served, served

CERTIFICATES = Path(__file__).parents[3] / "docs" / "certificates"


@pytest.fixture(name="desk", scope="module")
def desk_of_one_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A desk without fleets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with served([], find=list) as desk:
            yield desk


@pytest.mark.parametrize("name", ["session-in-fleet", "fleet"])
def test_the_page_of_a_machine_has_the_figures_of_its_certificates(desk: Served, name: str) -> None:
    shown = desk.json(f"/machines/{name}.json")["proofs"]
    assert name in [each["proof"]["target"] for each in shown]
    for each in shown:
        of, proof = read(CERTIFICATES / f"{each['proof']['target']}.json"), each["proof"]
        assert (proof["held"], proof["open"], proof["lacking"]) == (of.verdicts.held, [], "")
        assert (proof["states"], proof["steps"], proof["depth"]) == (of.counts.states, of.counts.steps, of.counts.depth)
        assert proof["limits"] == of.configuration.limits
        assert proof["coverage"] == {name: list(used) for name, used in of.coverage.items()}
    text = desk.get(f"/machines/{name}", accept="text/html").text
    assert f"all {shown[0]['proof']['held']} hold" in text
    assert f"{shown[0]['proof']['states']:,}" in text
    for each in desk.json(f"/machines/{name}.json")["properties"][:5]:
        assert each["name"] in text.replace("&#39;", "'").replace("&#34;", '"').replace("&gt;", ">")


def test_every_proof_is_on_the_page_of_a_machine_or_a_system(desk: Served) -> None:
    names = [each["name"] for each in desk.json("/machines.json")["machines"]]
    on_pages = [proof.target for name in names for proof in proofs_of(name)]
    assert sorted(on_pages) == sorted(each.target for each in all_proofs().proofs)
    assert {path.stem for path in CERTIFICATES.glob("*.json")} == set(on_pages)


def test_a_proof_of_other_code_is_marked() -> None:
    (proof,) = proofs_of("session")
    every = all_proofs()
    place = every.made_of["session"][0]
    modules = list(every.modules)
    modules[place] = (modules[place][0], "0" * 32)
    changed = msgspec.structs.replace(every, modules=tuple(modules))
    assert not is_of_this_code(proof, changed)
    modules[place] = ("lifefold.core.nowhere.at_all", modules[place][1])
    assert not is_of_this_code(proof, msgspec.structs.replace(every, modules=tuple(modules)))
    page = machine_page("session")
    values: dict[str, Any] = {"nonce": "", "now_ms": 0, "here": "", "query": {}, "keys": {}, "has_reports": False}
    doubted = msgspec.structs.replace(page, proofs=tuple(_of(each, is_same=False) for each in page.proofs))
    trusted = msgspec.structs.replace(page, proofs=tuple(_of(each, is_same=True) for each in page.proofs))
    assert re.search(r'<tr class="doubt">.*another code', html("machine.html", doubted, values))
    assert "doubt" not in html("machine.html", trusted, values)


def _of(proven: Proven, *, is_same: bool) -> Proven:
    return msgspec.structs.replace(proven, is_of_this_code=is_same)


def test_the_bounds_of_a_proof_are_in_words() -> None:
    words = {each.proof.target: (each.words, each.proof) for each in machine_page("fleet").proofs}
    for said, proof in words.values():
        commands = proof.limits["commands"]
        assert ("any number of operator commands" if commands is None else f"at most {commands} operator") in said
        assert ("a runner that crashes at most" in said) is isinstance(proof.crashes, Crashed)
