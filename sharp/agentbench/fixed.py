"""What does not depend on any team: the floor of the chain figures, and the check of problems that are ill-posed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hpc.files import write_atomic
from sharp.agentbench.cases import Case
from sharp.agentbench.illposed import list_ill_posed, load_ill_posed
from sharp.agentbench.metrics.floors import Floor, floors
from sharp.agentbench.process import Accepted


def floors_of(cases: Sequence[Case], folder: Path) -> dict[str, Floor]:
    """Return the floor of every chain figure over some cases, none for a single case; kept in a folder."""
    if len(cases) < 2:
        return {}
    graphs = {case.id: {"specified": Accepted(case.problem).graph} for case in cases}
    name = hashlib.sha256(repr([(case.id, case.problem.hash) for case in cases]).encode()).hexdigest()
    path = folder / f"floors-{name[:12]}.json"
    if not path.exists():
        found = {figure: asdict(floor) for figure, floor in floors(graphs).items()}
        write_atomic(path, json.dumps(found, indent=1).encode())
    return {figure: Floor(**floor) for figure, floor in json.loads(path.read_bytes()).items()}


@dataclass(frozen=True)
class Alarm:
    """What the deterministic check says of one ill-posed case, and what is right."""

    case: str
    expected: str
    kind: str
    found: str
    kinds: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether it asks where asking is right, and refuses where that is."""
        return self.found == self.expected

    @property
    def named(self) -> bool:
        """Whether it also says what is wrong."""
        return self.right and self.kind in self.kinds


def alarms() -> list[Alarm]:
    """Check all ill-posed cases."""
    found = []
    for name in list_ill_posed():
        case = load_ill_posed(name)
        diagnosis = case.diagnose()
        kinds = tuple(concern.kind for concern in diagnosis.concerns)
        found.append(Alarm(name, case.verdict, case.kind, diagnosis.verdict, kinds))
    return found
