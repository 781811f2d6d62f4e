"""How do the processes of a machine share standing subscriptions?

As one index file, which each of them maps, and which says beside the index (see `index_file`):

    place       by number the place of an id among the answers
    digests     by place what tells a subscription from another, see `roster`
    evolving    by number the standing subscriptions of which the index holds only the fixed part

A new roster is taken into the index of an older one: what is gone is discarded, what is new or has
changed is added, and the rest is not looked at. Places are kept apart from the index, so that the
order of the answers is that of the roster, whatever was done to get there.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from driftline.matching.columns import Columns
from driftline.matching.index import Index
from driftline.matching.index_file import code, index_of, sections_of
from driftline.matching.lazy import fixed_of, in_order, verified
from driftline.matching.matcher import Matches
from driftline.matching.roster import DIGEST, Roster
from driftline.matching.sections import open_sections, write_sections
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value

# Every change leaves some free room in an index, and one built anew has none.
GENERATIONS_MAX = 64


class Shared:
    """Standing subscriptions that are matched in batches; answers are in the order of the roster.

    `generation` counts the rosters it has had since its index was built.
    """

    __slots__ = ("_digests", "_evolves", "_evolving", "_index", "_numbers", "_place", "generation")

    def __init__(
        self,
        index: Index,
        numbers: NDArray[np.int32],
        place: NDArray[np.int32],
        digests: NDArray[np.uint8],
        evolving: Mapping[int, Standing],
        generation: int,
    ) -> None:
        self._index = index
        self._numbers = numbers
        self._place = place
        self._digests = digests
        self._evolving = evolving
        self._evolves = np.zeros(len(place), np.bool_)
        self._evolves[list(evolving)] = True
        self.generation = generation

    @classmethod
    def of(cls, roster: Roster) -> Shared:
        """Build the index of a roster."""
        return cls._with(Index(), {}, roster, np.arange(len(roster)), 0)

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Shared:
        """What is in a file; FileRefused for one that is damaged, or of other code."""
        sections = open_sections(Path(path), code=code())
        return cls(
            index_of(sections),
            sections.array("numbers", np.int32),
            sections.array("place", np.int32),
            sections.array("digests", np.uint8).reshape(-1, DIGEST),
            pickle.loads(sections["evolving"]),
            sections.generation,
        )

    def write(self, path: str | PathLike[str]) -> None:
        """Write the file, or replace it; who has it open keeps what it was."""
        sections = sections_of(self._index) | {
            "numbers": self._numbers,
            "place": self._place,
            "digests": self._digests,
            "evolving": pickle.dumps(self._evolving, protocol=5),
        }
        write_sections(Path(path), sections, code=code(), generation=self.generation)

    def renewed(self, roster: Roster) -> Shared | None:
        """This index with what a newer roster says; None where it is less work to build another.

        It is the same index: whoever asks for the newer one does not use this one again.
        """
        before = self._index.numbers_of(roster.ids)
        known = before >= 0
        same = known.copy()
        held = self._digests[self._place[before[known]]]
        same[known] = (held == roster.digests[known]).all(axis=1)
        anew = np.flatnonzero(~same)
        gone = np.setdiff1d(self._numbers, before)
        if self.generation >= GENERATIONS_MAX or len(anew) + len(gone) > len(roster) // 2:
            return None
        names = self._index.names
        self._index.discard_batch([names[number] for number in gone.tolist()])
        kept = set(before[same].tolist()) if self._evolving else set()
        evolving = {number: one for number, one in self._evolving.items() if number in kept}
        return self._with(self._index, evolving, roster, anew, self.generation + 1)

    @classmethod
    def _with(
        cls,
        index: Index,
        evolving: dict[int, Standing],
        roster: Roster,
        anew: NDArray[np.intp],
        generation: int,
    ) -> Shared:
        """Take in those of the roster that are new; the index has the others."""
        reader = roster.reader()
        evolved: dict[int, Standing] = {}
        for place in anew.tolist():
            standing = reader[place]
            assert isinstance(standing.statement, Subscription)
            fixed = fixed_of(standing.statement)
            index.add(roster.ids[place], fixed.filters, standing.params)
            if fixed.evolves:
                evolved[place] = standing
        numbers = index.numbers_of(roster.ids)
        # By number, of which some are not in use.
        places = np.full(len(index.names), -1, np.int32)
        places[numbers] = np.arange(len(roster), dtype=np.int32)
        evolving = evolving | {int(numbers[place]): one for place, one in evolved.items()}
        return cls(index, numbers, places, roster.digests, evolving, generation)

    def match_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """For each event of the batch the ids of all that it satisfies."""
        found = self.find_batch(columns, env)
        offsets, places = in_order(found, self._place, None)
        return Matches(offsets, self._numbers[places], found.names)

    def find_batch(self, columns: Columns, env: Mapping[str, Value]) -> Matches:
        """The same, in no particular order."""
        found = self._index.match_batch(columns)
        if not self._evolving:
            return found
        return found.only(verified(found, self._evolves, self._evolving.__getitem__, columns, env))

    def __len__(self) -> int:
        return len(self._numbers)

    def _check(self) -> None:
        self._index._check()
        assert len(self._index) == len(self._numbers) == len(self._digests)
        assert self._place[self._numbers].tolist() == list(range(len(self._numbers)))
        assert np.count_nonzero(self._place >= 0) == len(self._numbers)
        assert (self._place[list(self._evolving)] >= 0).all()
