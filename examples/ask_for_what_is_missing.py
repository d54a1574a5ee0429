"""A problem that leaves something open is asked about, and one without a solution is refused. Nothing is invented.

python examples/ask_for_what_is_missing.py
"""

import sharp
from sharp.errors import ClarificationNeeded, SpecificationError

for name in ("rod-one-end", "backward-rod"):
    try:
        sharp.solve(name)
    except ClarificationNeeded as found:
        print(f"{name}: asked: {'; '.join(found.questions)}")
    except SpecificationError as refused:
        print(f"{name}: refused: {refused}")
