"""Planted faults change what is there: the program moves on, and a fault of a method that is gone would be found by
nobody.
"""

from __future__ import annotations

import pytest

from tests.simulation import mutants
from tests.simulation.coordinators import mutants as of_coordinators
from tests.simulation.fleets import mutants as of_fleets
from tests.simulation.planted import Mutant
from tests.simulation.replaced import replaced

ALL = {**mutants.MUTANTS, **of_coordinators.MUTANTS, **of_fleets.MUTANTS}


@pytest.mark.parametrize("mutant", ALL.values(), ids=ALL)
def test_a_planted_fault_is_of_a_method_that_is_there(mutant: Mutant) -> None:
    with replaced(mutant.method, mutant.replacement):
        pass
