"""The containers that two processes share: which have changed, and which nobody holds any more."""

from __future__ import annotations

import pytest

from verifiers.unit_tests.separate.known import Known
from verifiers.unit_tests.separate.values import content_of


def known(*containers: object) -> Known:
    table = Known(content_of, 0)
    for container in containers:
        table.add(container)
    table.agree()
    return table


def test_a_container_is_held_directly_or_through_another() -> None:
    inner: list[object] = []
    outer = [inner, 1, [2]]
    table = known(outer, inner)
    assert table.look() == ([], [])
    del inner
    assert table.look() == ([], [])
    inner = outer[0]  # type: ignore[assignment]  # it is that list
    del outer
    assert table.look() == ([], [0])
    del inner
    assert table.look() == ([], [0, 2])


def test_containers_that_hold_one_another_are_released_together() -> None:
    one: list[object] = []
    two = [one]
    one.append(two)
    table = known(one, two)
    del one
    assert table.look() == ([], [])
    del two
    assert table.look() == ([], [0, 2])


def test_a_change_is_one_of_identity() -> None:
    table = known(numbers := [1, 2])
    numbers[0] = True
    assert table.look()[0] == [0]
    table.agree([0])
    assert table.look()[0] == []
    numbers.append(3)
    assert table.look()[0] == [0]


@pytest.mark.parametrize("number", [0, 2, -1, True, "1", 1.0, None])
def test_a_number_that_the_other_side_can_not_choose_is_refused(number: object) -> None:
    with pytest.raises(ValueError, match="can't be the number of a new container"):
        known([]).receive(number, [])


def test_an_unknown_number_can_not_be_forgotten() -> None:
    with pytest.raises(ValueError, match="no container has the number 8"):
        known([]).forget([8])
