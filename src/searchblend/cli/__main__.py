"""``python -m searchblend.cli``."""

from searchblend.cli.main import entry_point

entry_point()
