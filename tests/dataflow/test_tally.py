"""What a run says of its input at the end: where the first reject of each reason stands, and the figures."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import meander
from meander.dataflow.edges import Reason, Reject
from meander.dataflow.files import Meter
from meander.dataflow.ingest import Jump
from meander.dataflow.sources.reader import input_size, open_source
from meander.dataflow.tabular import from_table, from_tuples
from meander.dataflow.tally import Tally, hint_for, jump_message, position_of, summary
from meander.errors import InputError
from meander.syntax.values import ValueType

GOOD = {
    ".tsv": "a\tl\tb\t7",
    ".csv": "a,l,b,7",
    ".jsonl": '{"src":"a","label":"l","trg":"b","ts":7}',
}
BAD = {".tsv": "a\tl\tb", ".csv": "a,l,b", ".jsonl": '{"src":"a"}'}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(GOOD)),
    st.lists(st.sampled_from(["good", "good", "bad", ""]), max_size=30),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([1, 2, 65536]),
    st.booleans(),
)
def test_every_row_knows_the_number_of_its_line(
    tmp_path: Path, ending: str, kinds: list[str], newline: str, batch_rows: int, packed: bool
) -> None:
    header = ["", "src,label,trg,ts"] if ending == ".csv" else []
    lines = header + [{"good": GOOD[ending], "bad": BAD[ending], "": ""}[kind] for kind in kinds]
    path = tmp_path / f"x{ending}{'.gz' if packed else ''}"
    raw = newline.join(lines).encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    good: list[int] = []
    bad: list[int] = []
    for edges, rejects in open_source(str(path), batch_rows=batch_rows):
        if edges.rows:
            assert edges.origin is not None
            assert (edges.origin.path, edges.origin.start) == (str(path), 0)
            good += edges.origin.line.tolist()
        bad += [reject.line for reject in rejects]
    numbers = [(number, line) for number, line in enumerate(lines, start=1) if number > len(header)]
    assert good == [number for number, line in numbers if line == GOOD[ending]]
    assert bad == [number for number, line in numbers if line == BAD[ending]]


def test_lines_are_numbered_across_blocks(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    lines = [f"a\tl\tb\t{number}" if number % 1000 else "" for number in range(1, 30_001)]
    path.write_text("\n".join(lines))
    for edges, _ in open_source(str(path), batch_rows=700):
        assert edges.origin is not None
        assert np.array_equal(edges.origin.line, edges.ts)


def test_rows_of_tables_and_tuples_are_numbered(tmp_path: Path) -> None:
    table = pa.table({"src": ["a"] * 5, "label": ["l"] * 5, "trg": ["b", "b", "", "b", ""], "ts": [1] * 5})
    pq.write_table(table, tmp_path / "x.parquet")
    rows = list(zip(*(table[name].to_pylist() for name in ("src", "label", "trg", "ts")), strict=True))
    for chunks, path in (
        (from_table(table, stream="s", batch_rows=2), ""),
        (from_tuples(rows, stream="s", batch_rows=2), ""),
        (open_source(str(tmp_path / "x.parquet"), stream="s", batch_rows=2), str(tmp_path / "x.parquet")),
    ):
        rejects = []
        numbers: list[int] = []
        for edges, some in chunks:
            assert edges.origin is not None
            numbers += edges.origin.line.tolist()
            rejects += some
        assert numbers == [1, 2, 4]
        assert [(reject.line, reject.path) for reject in rejects] == [(3, path), (5, path)]
        assert position_of(rejects[0]) == f"row 3 of {path or 'stream s'}"


def test_a_part_of_a_file_counts_lines_from_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("one\ntwo\n\nfour\nfive\n")
    assert position_of(Reject("s", "", "", str(path), 2, len("one\ntwo\n"))) == f"line 4 of {path}"
    path.unlink()
    assert position_of(Reject("s", "", "", str(path), 2, 8)) == f"line 2 after byte 8 of {path}"
    assert position_of(Reject("s", "", "")) == "stream s"


def test_a_summary_has_the_first_example_of_each_reason_and_right_plurals() -> None:
    tally = Tally(edges=3, answers=1)
    tally.add_rejects(
        [
            Reject("s", Reason.TOO_LATE, "x\ta\ty\t50", "s.tsv", 2),
            Reject("s", Reason.TOO_LATE, "x\ta\ty\t40", "s.tsv", 3),
            Reject("s", Reason.MISSING, "x\ta", "s.tsv", 4),
        ]
    )
    *lines, last = summary(tally, 20.0, 2048)
    assert last == "3 edges, 2 late, 1 rejected, 1 answer, 2.0 KB of state, 20.0 s"
    assert lines[0] == r"too late: 2 edges, the first in line 2 of s.tsv: x\ta\ty\t50"
    assert lines[1].startswith("hint: --lateness DUR")
    assert lines[2] == r"missing field: 1 row, in line 4 of s.tsv: x\ta"
    assert lines[3].startswith("hint: a line of a .tsv file is src, label, trg, ts")
    assert lines[4].startswith("hint: --rejects FILE.jsonl")
    line = summary(tally, 0.5, 0, resumed=True, rejects_kept=True)
    assert len(line) == 5
    assert (
        line[-1] == "since this run resumed: 3 edges (6/s), 2 late, 1 rejected, 1 answer, 0 B of state, 0.5 s"
    )


def test_a_bad_value_is_reported_with_the_type_that_the_query_reads() -> None:
    query = "STREAM s WINDOW 9 Answer(x, y) <- a(x, y, amount: m), m > 'x'."
    rows = [
        {"src": "x", "label": "a", "trg": "y", "ts": ts, "amount": amount}
        for ts, amount in ((1, "y"), (2, 500))
    ]
    with pytest.warns(
        UserWarning, match="bad value of amount, which is read as STRING: 1 row, in row 2 of stream s"
    ):
        list(meander.run(query, rows))


def test_a_fraction_in_an_integer_is_hinted_to_be_a_float() -> None:
    reject = Reject("bank", Reason.bad_value("amount"), "x,a,y,1,2.5")
    assert "declare STREAM bank (amount FLOAT)" in hint_for(reject, ValueType.INT)
    assert "declare STREAM" not in hint_for(reject, ValueType.BOOL)


def test_nothing_used_is_an_error_and_no_input_is_none() -> None:
    Tally().check_used()
    tally = Tally(edges=2)
    tally.add_rejects([Reject("s", Reason.MISSING, ""), Reject("s", Reason.TOO_LATE, "")])
    tally.check_used()
    tally.add_reason(Reject("s", Reason.JUMPS_AHEAD, ""), 1)
    with pytest.raises(InputError, match="1 missing field, 1 too late, 1 time jumps ahead"):
        tally.check_used()


def test_a_warning_of_a_jump_names_the_edge_and_the_option() -> None:
    edge = Reject("s", Reason.JUMPS_AHEAD, "x\ta\ty\t1700000001000", "s.tsv", 7)
    message = jump_message(Jump(edge, 1_700_000_001_000, 1_700_000_000), "s")
    assert "from 1700000000 to 1700000001000, 19,656,250d and more than 1,000 windows ahead" in message
    assert "line 7 of s.tsv" in message
    assert "--max-jump DUR" in message


def test_a_meter_ends_at_the_size_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "0.tsv").write_text("a\tl\tb\t1\n" * 5000)
    (tmp_path / "1.jsonl.gz").write_bytes(
        gzip.compress((json.dumps({"src": "a", "label": "l", "trg": "b", "ts": 2}) + "\n").encode() * 9)
    )
    pq.write_table(pa.table({"src": ["a"], "label": ["l"], "trg": ["b"], "ts": [3]}), tmp_path / "2.parquet")
    meter = Meter()
    seen = [meter.bytes for _ in open_source(str(tmp_path), batch_rows=100, meter=meter)]
    assert seen == sorted(seen)
    assert meter.bytes == input_size([str(tmp_path)])


def test_a_python_run_warns_of_rejects_that_nobody_receives() -> None:
    query = "STREAM s WINDOW 9 Answer(x, y) <- a(x, y)."
    rows = [("x", "a", "y", 1), ("x", "a", "y", "soon"), ("x", "a", "y", -1), ("x", "a", "y", "late")]
    with pytest.warns(UserWarning, match="could not be used") as caught:
        assert len(list(meander.run(query, rows))) == 1
    [message] = [str(warning.message) for warning in caught]
    assert message.splitlines()[0].startswith(
        "3 rows of the input could not be used: bad time: 2 rows, the first in row 2 of stream s: "
    )
    assert "; negative time: 1 row, in row 3 of stream s: " in message
    assert message.splitlines()[1].startswith("hint: rejects=[]")


@pytest.mark.filterwarnings("error")
def test_a_python_run_with_rejects_or_without_any_does_not_warn() -> None:
    query = "STREAM s WINDOW 9 Answer(x, y) <- a(x, y)."
    assert len(list(meander.run(query, [("x", "a", "y", 1), ("x", "a", "y", -1)], rejects=[]))) == 1
    assert len(list(meander.run(query, [("x", "a", "y", 1)]))) == 1


def test_a_python_run_warns_of_a_label_that_no_edge_had() -> None:
    query = "STREAM s WINDOW 9 Answer(x, y) <- (a|b)+(x, y)."
    with pytest.warns(UserWarning, match="no edge had the label b, which the query reads"):
        list(meander.run(query, [("x", "a", "y", 1)]))


def test_a_label_of_late_edges_alone_is_one_that_no_usable_edge_had() -> None:
    query = "STREAM s WINDOW 9 Answer(x, y) <- (a|b)+(x, y)."
    with pytest.warns(UserWarning, match="no edge that could be used had the label b, which the query reads"):
        list(meander.run(query, [("x", "a", "y", 50), ("x", "b", "y", 1)], rejects=[]))
