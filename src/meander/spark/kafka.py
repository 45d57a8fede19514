"""Kafka as a source of edges and a sink of answers, through Spark's connector where it is there.

A record's value is an edge as a line of JSON (`{"src": …, "label": …, "trg": …, "ts": …}`), the same as in a
`.jsonl` file, or with tabs between the fields. Records of one partition keep the order of their offsets;
partitions are merged by time. Answers are written one record an answer, as lines of JSON: after a crash the last
batch may be there twice, as Kafka's sink in Spark promises no more.
"""

from __future__ import annotations

import difflib
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from meander.errors import ArgumentError, InputError, MeanderError

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
"""The newest connector that is published; it works with the Spark that Meander uses."""

JARS = "MEANDER_KAFKA_JARS"
"""The environment's name for a folder that has the connector's jars."""

REACH = 5.0
"""How many seconds a broker has to accept a connection."""

ANSWER = "20000"
"""How many milliseconds a broker has to list its topics."""

PLACE = re.compile(r"kafka://([^/\s]+)/([\w.\-]+)")


def parse_place(place: str) -> tuple[str, str]:
    """The servers and the topic of `kafka://host:port[,host:port]/topic`."""
    found = PLACE.fullmatch(place)
    if found is None:
        raise ArgumentError(f"{place} is no place in Kafka", hint="write kafka://host:port/topic")
    return found.group(1), found.group(2)


def check_broker(place: str, kind: type[MeanderError]) -> None:
    """Refuse a topic none of whose brokers can be reached: Kafka's own client would try for minutes, in silence."""
    servers, topic = parse_place(place)
    reasons = []
    for server in servers.split(","):
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit():
            raise ArgumentError(f"{place}: {server} has no port", hint="write kafka://host:port/topic")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=REACH).close()
            return
        except (OSError, OverflowError) as error:
            reasons.append(f"{server} ({getattr(error, 'strerror', None) or error})")
    raise kind(
        f"no Kafka broker can be reached for the topic {topic}: {', '.join(reasons)}",
        hint="check that the broker runs, and that its host and port can be reached from here",
    )


def check_topic(spark: SparkSession, place: str) -> None:
    """Refuse a topic that does not exist: Kafka would create an empty one, or wait for it in silence."""
    servers, topic = parse_place(place)
    jvm: Any = spark.sparkContext._jvm
    admin = jvm.org.apache.kafka.clients.admin.AdminClient
    if not isinstance(admin, JavaClass):
        return  # the connector's classes cannot be seen from here
    settings = jvm.java.util.Properties()
    settings.put("bootstrap.servers", servers)
    settings.put("default.api.timeout.ms", ANSWER)
    settings.put("request.timeout.ms", ANSWER)
    client = admin.create(settings)
    try:
        topics = sorted(str(name) for name in client.listTopics().names().get())
    finally:
        client.close()
    if topic not in topics:
        existing = difflib.get_close_matches(topic, topics, n=5, cutoff=0.0)
        raise InputError(
            f"Kafka at {servers} has no topic {topic}: it has {', '.join(existing) or 'none'}",
            hint="create the topic, or check its name",
        )


def connector_settings() -> dict[str, str]:
    """Settings that give a local Spark the connector: the jars of a folder, or what Spark fetches by itself."""
    folder = os.environ.get(JARS)
    if folder:
        return {"spark__jars": ",".join(sorted(str(one) for one in Path(folder).glob("*.jar")))}
    return {"spark__jars__packages": CONNECTOR}


def kafka_frame(spark: SparkSession, place: str) -> DataFrame:
    """The records of a topic from its beginning on: `value`, in the order of each partition's offsets."""
    servers, topic = parse_place(place)
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    try:
        frame = reader.load().select(F.col("value"))
    except AnalysisException as error:
        raise missing_connector() from error
    check_topic(spark, place)
    return frame


def kafka_writer(place: str) -> Callable[[DataFrame, int], Any]:
    """A sink that writes each answer as a record of JSON."""
    servers, topic = parse_place(place)

    def take(frame: DataFrame, batch: int) -> None:
        records = frame.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("value"))
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", servers)
        writer.option("topic", topic).save()

    return take


def missing_connector() -> ArgumentError:
    return ArgumentError(
        "Spark has no connector for Kafka",
        hint=f"start Spark with --packages {CONNECTOR}, or set {JARS} to a folder with its jars",
    )
