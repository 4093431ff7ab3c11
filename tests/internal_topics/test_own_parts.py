"""Parts that nobody names are deleted once that is certain, and what is remembered of them has a bound."""

from __future__ import annotations

from kafka_sidecar.internal_topics.own_parts import MOST_HEADS, MOST_KEYS, MOST_UNNAMED, OwnParts
from kafka_sidecar.internal_topics.snapshot_parts import Head


def head(number: int) -> Head:
    return Head(b"%d" % number, 2, b"digest")


def test_a_head_that_may_be_stored_keeps_its_parts_until_a_later_value_is() -> None:
    own = OwnParts()
    own.head_is_sent(b"a", head(1))
    assert own.heads(b"a") == (head(1),)
    assert own.unnamed == []
    before = own.heads(b"a")
    own.head_is_sent(b"a", head(2))
    own.has_replaced(b"a", before)
    assert own.heads(b"a") == (head(2),)


def test_parts_whose_head_was_not_sent_or_was_replaced_by_anothers_are_unnamed() -> None:
    own = OwnParts()
    own.head_was_not_sent(b"a", head(1))
    own.head_is_sent(b"a", head(2))
    own.another_has_replaced(b"a", head(2))
    own.another_has_replaced(b"a", head(3))  # not of this process
    assert own.unnamed == [(b"a", head(1)), (b"a", head(2))]
    own.are_deleted([(b"a", head(1))])
    assert own.unnamed == [(b"a", head(2))]
    assert own.heads(b"a") == ()


def test_there_are_only_so_many_however_often_it_fails() -> None:
    own = OwnParts()
    for number in range(2 * MOST_KEYS):
        own.head_is_sent(b"%d" % number, head(number))
        own.head_is_sent(b"same", head(number))
        own.head_was_not_sent(b"b", head(number))
    assert len(own._heads) == MOST_KEYS
    assert len(own.heads(b"same")) == MOST_HEADS
    assert len(own.unnamed) == MOST_UNNAMED
