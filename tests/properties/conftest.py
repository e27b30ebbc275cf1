"""The generators live in ``tests/strategies.py``; a slow machine is no failure."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent.parent))

settings.register_profile("searchblend", deadline=None)
settings.load_profile("searchblend")
