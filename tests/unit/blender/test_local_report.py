"""What a device sends for given words."""

from __future__ import annotations

import subprocess
import sys

import pytest
from made_groups import Quiet

from searchblend.blender.paper.local_report import local_report, randomize
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape
from searchblend.core.records import HeadList, Record

HEAD = HeadList({"a": ["u", "v"], "b": ["u"]})
PARAMS = BlenderParams(Budget(4, 1e-5))
PROBABILITIES = ReportProbabilities.of(HEAD, PARAMS)
TRUTH = 0
URL_LIE = PROBABILITIES.keep_record_below[0]
QUERY_LIE = PROBABILITIES.keep_query_below


def tape(*words: int) -> Tape:
    return Tape(b"".join(word.to_bytes(8, "little") for word in words))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((TRUTH,), (0, 1)),
        ((URL_LIE - 1,), (0, 1)),
        ((URL_LIE, 0), (0, 0)),
        ((URL_LIE, 1), (0, 2)),
        ((QUERY_LIE - 1, 1), (0, 2)),
        ((QUERY_LIE, 0), (1, 0)),
        ((QUERY_LIE, 1), (1, 1)),
        ((QUERY_LIE, 1 << 32), (2, 0)),
        ((QUERY_LIE, (1 << 32) + 1), (2, 0)),
    ],
)
def test_words_decide(words: tuple[int, ...], said: tuple[int, int]):
    """The truth is ⟨a, v⟩: cell (0, 1). High half: the other query; low half: the URL."""
    source = tape(*words)
    assert randomize(0, 1, PROBABILITIES, source) == said
    assert source.left == 0


def test_a_truthful_report_names_the_cell():
    assert local_report([Record("a", "v")], HEAD, PARAMS, randomness=tape(TRUTH)) == (1,)
    assert local_report([Record("a", "x")], HEAD, PARAMS, randomness=tape(TRUTH)) == (2,)
    assert local_report([Record("z", "u")], HEAD, PARAMS, randomness=tape(TRUTH)) == (5,)


def test_one_of_several_records_is_drawn_first():
    records = [Record("a", "u"), Record("b", "u"), Record("z", "u")]
    assert local_report(records, HEAD, PARAMS, randomness=tape(1, TRUTH)) == (3,)


def test_every_report_has_m_cells_drawn_with_replacement():
    params = BlenderParams(Budget(4, 1e-5), records_per_client=3)
    records = [Record("a", "u"), Record("b", "u")]
    source = tape(0, TRUTH, 1, TRUTH, 1, TRUTH)
    assert local_report(records, HEAD, params, randomness=source) == (0, 3, 3)
    assert len(local_report(records[:1], HEAD, params)) == 3


def test_a_device_without_a_record_sends_nothing():
    with pytest.raises(InvalidParameter, match="records"):
        local_report([], HEAD, PARAMS)


def test_a_report_on_the_wildcard_alone():
    assert local_report([Record("a", "u")], HeadList({}), PARAMS, randomness=Quiet()) == (0,)


def test_a_device_loads_the_standard_library_only():
    """``local_report`` and all that it imports runs where there is no numpy."""
    code = (
        "import sys\nimport searchblend.blender.paper.local_report\n"
        "outside = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(name for name in outside if name in ('numpy', 'scipy', 'rich', 'duckdb')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
