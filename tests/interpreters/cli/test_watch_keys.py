"""The keys of `lifefold watch`: the cursor stays on its item, and a command is given only after its question."""

from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.cli.watch_items import Item, Key
from lifefold.interpreters.cli.watch_keys import PAGE, Order, Screen, keys_of, press, question, settled

APPROVE = Key("a", "approve", ("approve", "one"), "approve one")
REJECT = Key("r", "reject", ("reject", "one", "--reason"), "reject one: reason", takes_text=True)
DIFF = Key("d", "diff", ("diff", "one"), shows=True)
RESUME = Key("p", "resume", ("resume", "ann"))
ITEMS = (
    Item("task one", "!", "one", "waits", keys=(APPROVE, REJECT, DIFF)),
    Item("paused ann", "!", "ann", "is paused", keys=(RESUME,)),
    *(Item(f"task {n}", " ", str(n), "open") for n in range(30)),
)


def pressed(text: str, screen: Screen | None = None) -> tuple[Screen, list[Order]]:
    screen = screen or Screen()
    orders: list[Order] = []
    for key in keys_of(text):
        screen, order = press(screen, ITEMS, key)
        orders += [] if order is None else [order]
    return screen, orders


def test_a_command_that_changes_something_is_given_after_a_yes_only() -> None:
    """One key by mistake approves nothing."""
    assert pressed("a") == (Screen("task one", 0, APPROVE), [])
    assert question(pressed("a")[0]) == "approve one? y/n"
    assert pressed("ay")[1] == [Order(("approve", "one"))]
    assert pressed("an") == (Screen("task one", 0, said="nothing is done"), [])
    assert pressed("a\x1b")[1] == []


def test_a_reason_is_typed_and_corrected_and_is_one_argument_of_the_command() -> None:
    """A space, a quote or a character that is a key elsewhere is a part of the text; Escape leaves it."""
    assert pressed("rtoo sq\x7fhort'q\r")[1] == [Order(("reject", "one", "--reason", "too short'q"))]
    assert question(pressed("rbad")[0]) == "reject one: reason: bad"
    assert pressed("r\r")[1] == []
    assert pressed("r  \r")[0].asked == REJECT
    assert pressed("rbad\x1b") == (Screen("task one", 0, said="nothing is done"), [])
    assert pressed("rb\x01\x1b[Ad\r")[1] == [Order(("reject", "one", "--reason", "bd"))]


def test_a_command_that_shows_something_takes_the_screen_at_once() -> None:
    """A look changes nothing, and a pause is ended by the key that says so."""
    assert pressed("d")[1] == [Order(("diff", "one"), shows=True)]
    assert pressed("jp")[1] == [Order(("resume", "ann"))]
    assert pressed("jd")[1] == []


def test_the_cursor_moves_by_arrows_letters_and_pages_and_stays_in_the_list() -> None:
    """A sequence of a terminal is one key."""
    assert pressed("\x1b[B\x1bOBj")[0].place == 3
    assert pressed("\x1b[B\x1b[A\x1b[A")[0].place == 0
    assert pressed("\x1b[6~")[0].place == PAGE
    assert pressed("G")[0].place == len(ITEMS) - 1
    assert pressed("G\x1b[6~j")[0].place == len(ITEMS) - 1
    assert pressed("Gg")[0].at == "task one"
    assert pressed("q")[0].quits


def test_the_cursor_stays_on_its_item_when_the_list_changes_and_on_its_place_when_the_item_goes() -> None:
    """A key that is pressed while the list changes is for the item that was chosen."""
    chosen, _ = pressed("j")
    later = (Item("question ann/Q1", "?", "ann/Q1", "may it?"), *ITEMS)
    assert settled(chosen, later) == Screen("paused ann", 2)
    gone = tuple(each for each in ITEMS if each.id != "paused ann")
    assert settled(chosen, gone) == Screen("task 0", 1)
    assert settled(chosen, ()) == Screen("", 0)
    assert press(chosen, (), "a") == (Screen("", 0), None)


def test_an_answer_is_for_the_item_that_it_was_asked_about() -> None:
    """The question keeps its command, although the cursor's item has gone meanwhile."""
    asked, _ = pressed("a")
    _, order = press(asked, ITEMS[1:], "y")
    assert order == Order(("approve", "one"))


@given(st.text(max_size=60))
def test_any_keys_leave_a_screen_that_can_be_drawn(text: str) -> None:
    """Hostile or accidental input moves the cursor at most within the list."""
    screen, orders = pressed(text)
    assert 0 <= screen.place < len(ITEMS)
    assert question(screen).isprintable()
    assert all(word for order in orders for word in order.words)
