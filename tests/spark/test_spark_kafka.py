"""Kafka for real: edges from a topic, answers to a topic, a broker and a run that are killed and started again."""

import json
import random

import pytest
from incidents import CLOSURE, generate, held_with_values
from incidents import instants_held as instants
from incidents import read_records as read_lines
from kafka_broker import Broker, NoKafka

import meander
from meander.errors import InputError
from meander.spark.input.kafka import parse_kafka_url
from meander.spark.session import Session

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def broker(tmp_path_factory, spark):
    if "kafka" not in spark.conf.get("spark.jars", ""):
        pytest.skip("Kafka is left out: " + spark.conf.get("spark.meander.noKafka", "no connector"))
    try:
        server = Broker(tmp_path_factory.mktemp("broker"))
        server.start()
    except NoKafka as reason:
        pytest.skip(f"Kafka is left out: {reason}")
    yield server
    server.kill()


def send(spark, broker, topic, rows):
    lines = [json.dumps(dict(zip(("src", "label", "trg", "ts"), row, strict=True))) for row in rows]
    send_lines(spark, broker, topic, lines)


def send_lines(spark, broker, topic, lines):
    frame = spark.createDataFrame([(line,) for line in lines], "value string").coalesce(1)
    servers = f"127.0.0.1:{broker.port}"
    frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def start(spark, broker, tmp_path, out):
    session = Session(spark)
    session.stream("s", f"kafka://127.0.0.1:{broker.port}/edges")
    session.query(CLOSURE, "q")
    return session.start(str(tmp_path / "checkpoint"), {"q": out}, lateness=5)


def test_edges_from_a_topic_answers_to_a_file_across_a_restart(spark, broker, tmp_path):
    rows = generate(21, 600)
    send(spark, broker, "edges", rows[:300])
    out = str(tmp_path / "out.jsonl")
    first = start(spark, broker, tmp_path, out)
    first.process_available()
    first.stop()
    broker.kill()
    broker.start()
    send(spark, broker, "edges", rows[300:])
    second = start(spark, broker, tmp_path, out)
    second.finish()
    assert instants(read_lines(tmp_path / "out.jsonl")) == instants(meander.run(CLOSURE, rows, lateness=5))


def test_answers_to_a_topic(spark, broker, tmp_path):
    rows = generate(22, 100)
    session = Session(spark)
    session.stream("s", spark.createDataFrame(rows, "src string, label string, trg string, ts bigint"))
    session.query(CLOSURE, "q")
    run = session.start(sinks={"q": f"kafka://127.0.0.1:{broker.port}/answers"})
    assert run.wait(300)
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", f"127.0.0.1:{broker.port}")
    records = [json.loads(row.value) for row in reader.option("subscribe", "answers").load().collect()]
    assert instants(records) == instants(meander.run(CLOSURE, rows))


VALUES = """STREAM s (amount FLOAT, due TIME, note STRING) WINDOW 30
TABLE t (rank INT)
Answer(x, y, of: n, by: d, why: w) <- s.pays(x, y, amount: n, due: d, note: w), t.known(y, rank: r), n > r.
"""


def rows_with_values(seed):
    draw = random.Random(seed)
    rows = []
    for at in range(240):
        row = {
            "src": f"v{draw.randint(0, 5)}",
            "label": "pays",
            "trg": f"v{draw.randint(0, 5)}",
            "ts": at // 2,
        }
        row |= {
            "amount": draw.choice((None, 1, 2.5, 7)),
            "due": draw.choice((3, "1970-01-01T00:01:00Z", None)),
        }
        rows.append(row | {"note": draw.choice(("", "é", "x"))})
    known = [
        {"src": f"v{draw.randint(0, 5)}", "label": "known", "ts": at, "rank": draw.randint(0, 6)}
        for at in range(110)
    ]
    return {"s": rows, "t": known}


def test_records_with_values_from_topics_to_a_topic_across_a_restart(spark, broker, tmp_path):
    streams = rows_with_values(24)
    servers = f"127.0.0.1:{broker.port}"

    def start():
        session = Session(spark)
        session.stream("s", f"kafka://{servers}/pays")
        session.stream("t", f"kafka://{servers}/known")
        session.query(VALUES, "q")
        return session.start(
            str(tmp_path / "checkpoint"), {"q": f"kafka://{servers}/values"}, lateness=5, idle="1h"
        )

    for half in (slice(None, 100), slice(100, None)):
        for stream, topic in (("s", "pays"), ("t", "known")):
            send_lines(spark, broker, topic, map(json.dumps, streams[stream][half]))
        run = start()
        run.process_available() if half.stop else run.finish()
        run.stop()
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    records = [json.loads(row.value) for row in reader.option("subscribe", "values").load().collect()]
    expected = held_with_values(meander.run(VALUES, streams, lateness=5))
    assert expected
    assert held_with_values(records) == expected


def test_a_topic_that_does_not_exist_is_named_with_those_that_do(spark, broker, tmp_path):
    send(spark, broker, "flows", generate(23, 1))
    session = Session(spark)
    session.stream("s", f"kafka://127.0.0.1:{broker.port}/flow")
    session.query(CLOSURE, "q")
    with pytest.raises(InputError) as refused:
        session.start(str(tmp_path / "checkpoint"), {"q": str(tmp_path / "out.jsonl")})
    assert refused.value.message.startswith(
        f"Kafka at 127.0.0.1:{broker.port} has no topic flow: it has flows"
    )
    assert refused.value.hint == "create the topic, or check its name"


def test_kafka_urls_are_parsed_or_refused():
    assert parse_kafka_url("kafka://a:1,b:2/t.x-1") == ("a:1,b:2", "t.x-1")
    with pytest.raises(meander.MeanderError, match="not a Kafka URL"):
        parse_kafka_url("kafka://a:1")
