"""What a batch does to a history, decided before anything is written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.store.appending import Appended, Known, NewMessage, plan


def message(body: str, uuid: str | None = None, *, partial: bool = False, starts_live: bool = False) -> NewMessage:
    return NewMessage(body.encode(), uuid, "user", partial, starts_live)


def test_new_messages_are_added_in_their_order() -> None:
    batch = [message("a", "1"), message("b"), message("c", "2")]
    made = plan(batch, {}, 0)
    assert made.added == batch
    assert made.outcome(10) == Appended(head_seq=13, appended=3, duplicates=0, replaced=0)


def test_inside_a_batch_the_first_of_a_uuid_stays() -> None:
    made = plan([message("a", "1"), message("b", "1")], {}, 0)
    assert [one.body for one in made.added] == [b"a"]
    assert made.outcome(0) == Appended(1, 1, 1, 0)


def test_inside_a_batch_a_final_message_takes_the_place_of_its_partial_one() -> None:
    made = plan([message("hal", "1", partial=True), message("x", "2"), message("half", "1")], {}, 0)
    assert [one.body for one in made.added] == [b"half", b"x"]
    assert made.outcome(0) == Appended(2, 2, 0, 1)


def test_a_stored_final_message_is_never_replaced() -> None:
    known = {"1": Known(4, partial=False)}
    made = plan([message("b", "1"), message("c", "1", partial=True)], known, 0)
    assert (made.added, made.replaced, made.removed) == ([], {}, [])
    assert made.outcome(9) == Appended(9, 0, 2, 0)


def test_a_stored_partial_message_is_replaced_in_its_place_once_final() -> None:
    known = {"1": Known(4, partial=True)}
    made = plan([message("more", "1", partial=True), message("all", "1"), message("late", "1")], known, 0)
    assert {seq: one.body for seq, one in made.replaced.items()} == {4: b"all"}
    assert made.outcome(9) == Appended(9, 0, 1, 2)


def test_a_partial_message_that_a_compaction_has_passed_by_moves_to_the_end() -> None:
    known = {"old": Known(4, partial=True), "new": Known(6, partial=True)}
    made = plan([message("x", "old"), message("y", "new"), message("z", "old")], known, covered_seq=5)
    assert made.removed == [4]
    assert [one.body for one in made.added] == [b"x"]
    assert {seq: one.body for seq, one in made.replaced.items()} == {6: b"y"}
    assert made.outcome(9) == Appended(10, 0, 1, 2)


def test_the_newest_boundary_of_added_and_replaced_messages_counts() -> None:
    assert plan([message("a"), message("b", starts_live=True), message("c")], {}, 0).boundary_seq(10) == 12
    known = {"1": Known(4, partial=True)}
    assert plan([message("b", "1", starts_live=True)], known, 0).boundary_seq(10) == 4
    assert plan([message("a")], {}, 0).boundary_seq(10) == 0


UUIDS = st.sampled_from([None, "a", "b", "c", "d"])
BATCHES = st.lists(st.builds(message, st.text("xyz", max_size=3), UUIDS, partial=st.booleans()), max_size=12)
KNOWN = st.dictionaries(st.sampled_from("abcd"), st.builds(Known, st.integers(1, 9), st.booleans()), max_size=4).filter(
    lambda known: len({place.seq for place in known.values()}) == len(known)
)


@given(BATCHES, KNOWN, st.integers(0, 9))
def test_every_message_is_counted_once_and_no_uuid_is_stored_twice(
    batch: list[NewMessage], known: dict[str, Known], covered_seq: int
) -> None:
    made = plan(batch, known, covered_seq)
    outcome = made.outcome(9)
    assert outcome.appended + outcome.duplicates + outcome.replaced == len(batch)
    assert outcome.head_seq == 9 + len(made.added)
    added = [one.uuid for one in made.added if one.uuid is not None]
    assert len(added) == len(set(added))
    staying = {uuid for uuid, place in known.items() if place.seq not in made.removed}
    assert staying.isdisjoint(added)
    assert all(seq > covered_seq for seq in made.replaced)


@given(BATCHES, KNOWN)
def test_a_batch_sent_again_changes_nothing_once_all_is_final(batch: list[NewMessage], known: dict[str, Known]) -> None:
    final = [NewMessage(one.body, one.uuid or f"n{place}", "user") for place, one in enumerate(batch)]
    first = plan(final, known, 0)
    places = {one.uuid or "": Known(9 + place, partial=False) for place, one in enumerate(first.added, 1)}
    places |= {
        uuid: Known(place.seq, place.partial and place.seq not in first.replaced) for uuid, place in known.items()
    }
    again = plan(final, places, 0)
    assert (again.added, again.replaced, again.removed) == ([], {}, [])
    assert again.outcome(9).duplicates == len(final)
