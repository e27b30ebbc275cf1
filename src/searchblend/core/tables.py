"""Released tables for other libraries and for notebooks. None of the libraries is a dependency."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Final, Generic, Protocol, TypeVar

from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.core.outlet import HowRead, Where, outlet
from searchblend.core.privacy import ROW_UNIT, Guarantee, StatedGuarantee
from searchblend.core.visible import visible

Name = TypeVar("Name", bound=str)
ROWS_SHOWN: Final = 10
"""of a table in a notebook"""


class Column(Protocol):
    """The values of one column: a list or an array."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class Tables(ABC, Generic[Name]):
    """What has columns, and gives them to other libraries."""

    @abstractmethod
    def columns(self, table: Name | None = None) -> Mapping[str, Column]:
        """One table, or the first, column by column, as lists or arrays of one length."""

    def to_arrow(self, table: Name | None = None) -> Any:
        """One table, or the first, for PyArrow, which must be installed."""
        with _installed("pyarrow"):
            import pyarrow
        return pyarrow.table(self.columns(table))

    def to_pandas(self, table: Name | None = None) -> Any:
        """One table, or the first, as a DataFrame of pandas, which must be installed."""
        with _installed("pandas"):
            import pandas
        return pandas.DataFrame(self.columns(table))

    def to_polars(self, table: Name | None = None) -> Any:
        """One table, or the first, as a DataFrame of Polars, which must be installed."""
        with _installed("polars"):
            import polars
        columns = {name: list(column) for name, column in self.columns(table).items()}  # strings in arrays stay objects
        return polars.DataFrame(columns)


class ReleasedTables(Tables[Name]):
    """Tables that a run released: they can be saved as a release, and drawn. Neither draws noise nor spends budget."""

    guarantee: Guarantee | StatedGuarantee

    def save(self, folder: Where, *, log: HowRead | None = None, html: bool = False, replace: bool = False) -> None:
        """Write the folder that the command line writes: the tables, and ``statement.json`` with promise and hashes.

        Args:
            folder: where; it appears whole or not at all
            log: how the log was read, ``SearchLog.decided``; without it the statement says that this is not on record
            html: whether the folder gets a page for people, too
            replace: whether an earlier release in the folder may go

        Example:
            ``released.save("out", log=log.decided)``
        """
        outlet().save(self, folder, log=log or {}, html=html, replace=replace)

    def plot(self, file: Where | None = None) -> Any:
        """The largest of the first table with their 95 % intervals, as a figure of Matplotlib (the extra ``plots``).

        Args:
            file: where the figure goes as well, .png or .svg

        Example:
            ``released.plot("head.png")``
        """
        return outlet().plot(self, file)


def chosen(table: Name | None, *names: Name) -> Name:
    """The table of this name, or the first."""
    if table is not None and table not in names:
        raise InvalidParameter("table", f"expected one of {', '.join(names)}")
    return table or names[0]


@contextmanager
def _installed(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{name} is not installed: run pip install {name}, or use columns()") from error


def short_promise(guarantee: Guarantee | StatedGuarantee) -> str:
    """ε and δ in a few words, and whether they are promised at all."""
    doubt = "" if guarantee.holds else ", does NOT hold"
    of_rows = " of each row, not of each person" if guarantee.unit == ROW_UNIT else ""
    return f"ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}{of_rows}{doubt}"


def html_table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    n_rows: int,
    promise: Guarantee | StatedGuarantee | str,
) -> str:
    """The first rows of a table for a notebook, under its title, over what is promised. Every string is escaped."""
    heads = "".join(f"<th>{_shown(name)}</th>" for name in header)
    lines = ["".join(f"<td>{_shown(cell)}</td>" for cell in row) for row in rows]
    left_out = f"<p>… and {n_rows - len(lines):,} more</p>" if n_rows > len(lines) else ""
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f"<table><caption>{_shown(title)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        f"{left_out}<p>{_shown(str(promise).partition(chr(10))[0])}</p>"
    )


def _shown(text: str) -> str:
    return escape(visible(text))
