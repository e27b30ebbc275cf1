"""A made-up log as text."""

from __future__ import annotations

import numpy as np
import pytest

from made_click_graph import made_graph
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.synthesize import NOTHING, SyntheticLog, synthesize_log
from searchblend.core.errors import RunError
from searchblend.wire.click_graph_files import COLUMNS, encode_synthetic_log


def test_lines_say_what_was_drawn():
    graph = made_graph()
    url = graph.urls.index("http://sky.example/")
    log = SyntheticLog(
        np.array([0, 0]), np.array([4, 4]), np.array([5, 6]), np.array([NOTHING, url]), np.array([False, True])
    )
    header, first, second = b"".join(encode_synthetic_log(graph, log)).decode().splitlines()
    assert header.split("\t") == list(COLUMNS)
    assert first == "1\tweather\t\t5\t0"
    assert second == "1\tweather radar\thttp://sky.example/\t5\t1"


def test_long_logs_come_in_pieces():
    pieces = list(encode_synthetic_log(made_graph(), synthesize_log(made_graph(), 70_000)))
    assert len(pieces) == 3
    assert b"".join(pieces).count(b"\n") == 70_001


def test_a_text_that_would_break_a_line_is_refused():
    graph = ClickGraph.of({"a\tb": (5, 4.0, 6.0)}, {})
    with pytest.raises(RunError, match="holds a tab or a line break"):
        list(encode_synthetic_log(graph, synthesize_log(graph, 1)))
