"""Many cells on a real Spark: each query's answers are those of one cell, each answer once."""

import json
from collections import Counter

import pytest
from test_spark_run import generate, instants, read_lines, write_tsv

import meander
from meander.spark.session import Session

pytestmark = pytest.mark.spark

QUERIES = {
    "closure": "STREAM s WINDOW 30 SLIDE 3\nAnswer(x, y) <- (a/b*)(x, y) as P.",
    "join": "STREAM s WINDOW 30 SLIDE 3\nAnswer(x, z) <- a(x, y), b(y, z), a(x, z).",
}


@pytest.mark.parametrize("cells", [2, 3])
def test_answers_do_not_depend_on_the_number_of_cells(spark, tmp_path, cells):
    rows = generate(11, 1200)
    write_tsv(tmp_path / "s.tsv", rows)
    session = Session(spark)
    session.stream("s", str(tmp_path / "s.tsv"))
    for name, text in QUERIES.items():
        session.query(text, name)
    sinks = {name: str(tmp_path / f"{name}.jsonl") for name in QUERIES}
    run = session.start(str(tmp_path / "checkpoint"), sinks, follow=False, cells=cells, batch_rows=300)
    assert run.wait(300)
    for name, text in QUERIES.items():
        records = read_lines(tmp_path / f"{name}.jsonl")
        assert instants(records) == instants(meander.run(text, rows))
        assert max(Counter(map(json.dumps, records)).values()) == 1
    # Cells go on from the arrays that whichever worker had them left; only the first batch makes state anew.
    later = [cell for figures in run.figures[1:] for cell in figures["cells"]]
    assert later
    assert not any(cell["rebuilt"] for cell in later)
    shares = [
        sum(cell["answers"] for figures in run.figures for cell in figures["cells"] if cell["cell"] == number)
        for number in range(cells)
    ]
    assert min(shares) > 0
