"""A Kafka broker for tests: one node (KRaft) on loopback, from jars that Maven brings once."""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

import maven

HERE = Path(__file__).parent / "kafka"


NoKafka = maven.NoJars
"""Why there is no Kafka on this machine."""


def jars(name: str, poms: Path = HERE) -> Path:
    """The folder of the jars of `broker` or `connector`, or of another POM."""
    return maven.jars(poms / f"{name}.xml")


def free_port() -> int:
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        return int(connection.getsockname()[1])


class Broker:
    """A broker in a folder; it can be killed and started again with what it had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.classpath = f"{jars('broker')}/*"
        self.port, self.controller = free_port(), free_port()
        self.process: subprocess.Popen[bytes] | None = None
        (folder / "server.properties").write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.bootstrap.servers=127.0.0.1:{self.controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}\n"
            "controller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            f"log.dirs={folder / 'logs'}\n"
            "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\ngroup.initial.rebalance.delay.ms=0\nnum.partitions=2\n"
        )
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._java(
            "kafka.tools.StorageTool", "format", "-t", cluster, "-c", self.config, "--standalone"
        ).wait(120)

    @property
    def config(self) -> str:
        return str(self.folder / "server.properties")

    def start(self) -> None:
        self.process = self._java("kafka.Kafka", self.config)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.2)
        raise NoKafka("the broker did not start: " + (self.folder / "log").read_text()[-500:])

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = open(self.folder / "log", "ab")  # noqa: SIM115
        return subprocess.Popen(
            ["java", "-Xmx512m", "-cp", self.classpath, *arguments], stdout=log, stderr=log, cwd=self.folder
        )
