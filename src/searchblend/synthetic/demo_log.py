"""The log of ``searchblend demo``: synthetic users with the shape of the AOL log, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from searchblend.core.errors import OutputError
from searchblend.synthetic.population import AOL

_MEAN_EXTRA_LINES: Final = 1.5


def write_aol_like_log(path: Path, n_users: int, *, seed: int) -> None:
    """A TSV with header ``user query url``: one to a few lines per person, the same lines for the same seed."""
    generator = np.random.Generator(np.random.PCG64(seed))
    lines_per_user = 1 + generator.poisson(_MEAN_EXTRA_LINES, n_users)
    numbers = AOL.record_numbers(int(lines_per_user.sum()), generator)
    users = np.repeat(np.arange(1, n_users + 1), lines_per_user)
    records = AOL.records
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.write("user\tquery\turl\n")
            for user, number in zip(users.tolist(), numbers.tolist(), strict=True):
                query, url = records[number]
                file.write(f"{user}\t{query}\t{url}\n")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
