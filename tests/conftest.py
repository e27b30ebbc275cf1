"""Settings of all tests: a slow machine is no failure."""

from hypothesis import settings

settings.register_profile("searchblend", deadline=None)
settings.load_profile("searchblend")
