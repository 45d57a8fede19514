"""Edges that cannot be used: counted once, with the first of each reason, over cells, batches and restarts."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from cells_in_process import Cells
from hypothesis import given, settings
from hypothesis import strategies as st
from incidents import open_session, read_records

from meander.dataflow.edges import INFINITY, Reason
from meander.dataflow.layout import StreamLayout
from meander.dataflow.tabular import edges_of
from meander.dataflow.tally import position_of
from meander.engine import compile_query
from meander.spark.edge_codec import decode_edges, edges_chunk, encode_edges, encode_rejects, reject_reasons
from meander.spark.input.ledger import Segment
from meander.spark.input.reader import read_segment
from meander.spark.messages import closed
from meander.spark.run import Run

JOIN = "STREAM s WINDOW 40\nAnswer(x, z) <- a(x, y), b(y, z)."


def judged(stamps, lateness, max_jump) -> list[Reason | None]:
    """The definition, edge by edge: why each is rejected, or None."""
    clock, reasons = None, []
    for time in stamps:
        if clock is not None and time > clock + max_jump:
            reasons.append(Reason.JUMPS_AHEAD)
        elif clock is not None and time < clock - lateness:
            reasons.append(Reason.TOO_LATE)
        else:
            reasons.append(None)
            clock = time if clock is None else max(clock, time)
    return reasons


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.sampled_from([-9, -2, 0, 1, 3, 30, 500]), min_size=1, max_size=25),
    st.integers(0, 5),
    st.integers(1, 60),
    st.sampled_from([1, 3, 25]),
    st.sampled_from([1, 2, 3]),
)
def test_what_is_rejected_does_not_depend_on_batches_or_cells_and_counts_once(
    steps, lateness, max_jump, size, cells
) -> None:
    stamps = [max(0, sum(steps[: at + 1])) for at in range(len(steps))]
    rows = [(f"v{at}", "ab"[at % 2], f"v{at + 1}", time) for at, time in enumerate(stamps)]
    run = Cells([compile_query(JOIN, name="q")], cells, lateness=lateness, max_jump=max_jump)
    for start in range(0, len(rows), size):
        run.step([edges_chunk("s", edges_of(rows[start : start + size]))])
    run.step([closed("s")])
    reasons = judged(stamps, lateness, max_jump)
    assert [(reject.reason, reject.text.split("\t")[0]) for reject in run.rejects] == [
        (reason, row[0]) for row, reason in zip(rows, reasons, strict=True) if reason is not None
    ]
    counted = Counter(reasons)
    assert sum(cell["late"] for cell in run.figures) == counted[Reason.TOO_LATE]
    assert sum(cell["rejected"] for cell in run.figures) == counted[Reason.JUMPS_AHEAD]
    assert run.figures[-1]["time"] == INFINITY


def test_rows_of_a_part_of_a_file_are_found_again_in_the_file(tmp_path) -> None:
    path = tmp_path / "s.csv"
    lines = ["src,label,trg,ts", "x,a,y,1", "x,a", "", "x,a,y,2", "x,a,y", "x,a,y,3"]
    path.write_text("\n".join(lines) + "\n")
    text = path.read_bytes()
    starts = [0, text.index(b"x,a,y,1"), text.index(b"\nx,a,y,2"), len(text)]
    for start, end in pairwise(starts):
        for edges, rejects in read_segment(Segment("s", str(path), start, end), StreamLayout("s")):
            # Between tasks and cells they travel as bytes.
            for reject, count in reject_reasons(encode_rejects(rejects)) if rejects else ():
                assert count == 1
                assert position_of(reject) == f"line {lines.index(reject.text) + 1} of {path}"
            if edges.rows:
                carried = decode_edges(encode_edges(edges, lines=True)).origin
                assert (carried.path, carried.start) == edges.origin[:2]
                assert carried.line.tolist() == edges.origin.line.tolist()


def numbered_lines(first, last, odd) -> str:
    """Edges of one unit of time after the other, with some lines in the place of theirs."""
    return "".join(odd.get(at, f"v{at % 7},a,v{at % 5},{at}") + "\n" for at in range(first, last))


@pytest.mark.spark
def test_counts_and_examples_on_spark_cover_this_run_over_cells_and_a_restart(spark, tmp_path) -> None:
    """Edges of unit steps, cut into many batches; the clock is the one from before the restart."""
    (tmp_path / "in").mkdir()
    header = "src,label,trg,ts\n"
    odd = {600: "x,a,y,100", 700: "x,a", 800: "x,a,y,900000", 810: "x,a,y,1"}
    (tmp_path / "in" / "0.csv").write_text(header + numbered_lines(0, 1200, odd))

    def start() -> Run:
        session = open_session(spark, {"s": tmp_path / "in"}, {"q": (JOIN, None)})
        return session.start(
            str(tmp_path / "checkpoint"),
            {"q": str(tmp_path / "out.jsonl")},
            rejects=str(tmp_path / "rejects.jsonl"),
            cells=2,
            batch_rows=300,
            max_jump=50,
        )

    run = start()
    run.process_available()
    run.stop()
    assert not run.resumed
    assert len(run.figures) > 1
    assert run.totals == {"edges": 1199, "answers": 0, "late": 2, "rejected": 2}
    positions = {reason: position_of(example) for reason, example in run.tally.examples.items()}
    path = tmp_path / "in" / "0.csv"
    assert positions == {
        Reason.TOO_LATE: f"line 602 of {path}",
        Reason.MISSING: f"line 702 of {path}",
        Reason.JUMPS_AHEAD: f"line 802 of {path}",
    }
    assert run.labels_unseen == ["b"]

    odd = {1200: "x,a,y,1250", 1201: "x,a,y,1249"}
    (tmp_path / "in" / "1.csv").write_text(header + numbered_lines(1200, 1203, odd))
    again = start()
    again.finish()
    assert again.resumed
    assert again.labels_unseen == []
    # 1250 is 51 ahead of 1199; 1249 is not, and 1202 is behind that.
    assert again.totals == {"edges": 3, "answers": 0, "late": 1, "rejected": 1}
    assert again.tally.examples[Reason.JUMPS_AHEAD].text == "x,a,y,1250"
    assert len(read_records(tmp_path / "rejects.jsonl")) == 6
    assert again.bytes_read == sum(file.stat().st_size for file in (tmp_path / "in").iterdir())


@pytest.mark.spark
def test_a_suspicious_jump_on_spark_is_a_warning_once_and_names_its_line(spark, tmp_path) -> None:
    lines = "".join(f"x\ta\ty\t{time}\n" for time in (1, 2, 5_000_000, 3, 90_000_000_000))
    (tmp_path / "s.tsv").write_text(lines)
    session = open_session(spark, {"s": tmp_path / "s.tsv"}, {"q": (JOIN, None)})
    run = session.start(follow=False)
    warned = []
    run.warn = warned.append
    assert run.wait(300)
    (message,) = warned
    assert f"from 2 to 5000000, 57d and more than 1,000 windows ahead, in line 3 of {tmp_path}" in message
    assert run.totals["late"] == 1
