"""A port that cannot be used is told with the reason."""

from __future__ import annotations

import os
import socket

import pytest

from ops.embedded.ports import LOOPBACK, free_port, port_problem


def test_a_free_port_has_no_problem() -> None:
    assert port_problem(free_port()) is None


def test_a_port_that_somebody_has_is_taken() -> None:
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        assert port_problem(other.getsockname()[1]) == "is taken"


def test_an_address_that_is_not_ours_is_not_called_taken() -> None:
    """192.0.2.1 is set aside for documentation."""
    problem = port_problem(free_port(), "192.0.2.1")
    assert problem is not None
    assert problem.startswith("cannot be used on 192.0.2.1")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may use every port")
def test_a_port_of_the_system_needs_rights_and_is_not_called_taken() -> None:
    problem = port_problem(1)
    assert problem is not None
    assert "needs more rights" in problem
