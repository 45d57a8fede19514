"""`kafka://host:port/topic`: edges from a topic, through Spark's connector, which has to be installed.

The value of a record is an edge as a line of JSON (`{"src": …, "label": …, "trg": …, "ts": …}`), the same as in a
`.jsonl` file, or with tabs between the fields. Records of one partition keep the order of their offsets; partitions
are merged by time.
"""

from __future__ import annotations

import difflib
import os
import re
import socket
from pathlib import Path

from py4j.java_gateway import JavaClass
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.source import Source
from meander.errors import ArgumentError, InputError, MeanderError
from meander.spark.compat import java_of

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
"""The newest published connector; it works with the Spark that Meander uses."""

JARS = "MEANDER_KAFKA_JARS"
"""The environment variable that names a folder with the jars of the connector."""

CONNECT_SECONDS = 5.0
"""The time that a broker has to accept a connection."""

LIST_MILLISECONDS = "20000"
"""The time that a broker has to list its topics."""

URL = re.compile(r"kafka://([^/\s]+)/([\w.\-]+)", re.IGNORECASE)
URL_HINT = "write kafka://host:port/topic"


class KafkaSource(Source):
    """The records of a topic, from its beginning on."""

    def check(self, layout: StreamLayout, *, follow: bool = False) -> None:
        check_broker(self.url, InputError)

    def spark_settings(self) -> dict[str, str]:
        return connector_settings()

    def records(self, spark: SparkSession) -> DataFrame:
        servers, topic = parse_kafka_url(self.url)
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        try:
            frame = reader.load().select(F.col("value"))
        except AnalysisException as error:
            raise missing_connector() from error
        check_topic(spark, self.url)
        return frame


def parse_kafka_url(url: str) -> tuple[str, str]:
    """The servers and the topic of `kafka://host:port[,host:port]/topic`."""
    match = URL.fullmatch(url)
    if match is None:
        raise ArgumentError(f"not a Kafka URL: {url}", hint=URL_HINT)
    return match.group(1), match.group(2)


def check_broker(url: str, kind: type[MeanderError]) -> None:
    """Refuse a topic none of whose brokers can be reached: Kafka's own client would try for minutes, in silence."""
    servers, topic = parse_kafka_url(url)
    reasons = []
    for server in servers.split(","):
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit():
            raise ArgumentError(f"{url}: {server} has no port", hint=URL_HINT)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
            return
        except (OSError, OverflowError) as error:
            reasons.append(f"{server} ({getattr(error, 'strerror', None) or error})")
    raise kind(
        f"no Kafka broker can be reached for the topic {topic}: {', '.join(reasons)}",
        hint="check that the broker runs, and that its host and port can be reached from here",
    )


def check_topic(spark: SparkSession, url: str) -> None:
    """Refuse a topic that does not exist: Kafka would create an empty one, or wait for it in silence."""
    servers, topic = parse_kafka_url(url)
    jvm = java_of(spark)
    admin = jvm and jvm.org.apache.kafka.clients.admin.AdminClient
    if not isinstance(admin, JavaClass):
        return  # the connector's classes cannot be seen from here
    settings = jvm.java.util.Properties()
    settings.put("bootstrap.servers", servers)
    settings.put("default.api.timeout.ms", LIST_MILLISECONDS)
    settings.put("request.timeout.ms", LIST_MILLISECONDS)
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
    """Settings that give a local Spark the connector: the jars of a folder, or a package that Spark fetches."""
    folder = os.environ.get(JARS)
    if folder:
        return {"spark__jars": ",".join(sorted(str(jar) for jar in Path(folder).glob("*.jar")))}
    return {"spark__jars__packages": CONNECTOR}


def missing_connector() -> ArgumentError:
    return ArgumentError(
        "Spark has no connector for Kafka",
        hint=f"start Spark with --packages {CONNECTOR}, or set {JARS} to a folder with its jars",
    )
