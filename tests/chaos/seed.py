"""The seed of a run: everything that chaos leaves to chance follows from it."""

from __future__ import annotations

import os
import random

IN_CI = os.environ.get("CI") == "true"
_CHOSEN = os.environ.get("CHAOS_SEED")

# The same every time in CI; at home every run looks somewhere else.
SEED = int(_CHOSEN) if _CHOSEN else 4 if IN_CI else random.SystemRandom().randrange(1_000_000)
KILLS = int(os.environ.get("CHAOS_KILLS") or 6)
