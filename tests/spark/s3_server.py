"""An object store for tests: a server with the protocol of S3 on loopback, in a process of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kafka_broker import free_port, jars

from meander.spark.checkpoint.storage import Location, location

KEY, SECRET, REGION = "the-key", "the-secret", "us-east-1"
BUCKET = "checkpoints"


def s3a_jars() -> Path:
    """The folder of the jars by which Spark reaches S3."""
    return jars("s3a", Path(__file__).parent / "s3")


class S3Server:
    """The server, with one bucket."""

    def __init__(self, log: Path) -> None:
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        with open(log, "wb") as file:
            command = [sys.executable, __file__, str(port)]
            self.process = subprocess.Popen(command, stdout=file, stderr=file)
        deadline = time.monotonic() + 120
        while True:
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert self.process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        self._file_system(allow_bucket_creation=True).create_dir(BUCKET)

    def _file_system(self, **options: Any) -> Any:
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=KEY, secret_key=SECRET, endpoint_override=self.endpoint, region=REGION, **options
        )

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Hadoop with which a session reaches the server."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": KEY,
            "fs.s3a.secret.key": SECRET,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The environment with which a process reaches the server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def folder(self, name: str) -> Location:
        return location(f"s3a://{BUCKET}/{name}", self.settings)

    def objects(self, name: str) -> list[str]:
        """The names of all objects in a folder."""
        from pyarrow.fs import FileSelector

        found = self._file_system().get_file_info(FileSelector(f"{BUCKET}/{name}", recursive=True))
        return [info.path.removeprefix(f"{BUCKET}/{name}/") for info in found if info.is_file]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def cluster_variables(server: S3Server, folder: Path) -> dict[str, str]:
    """The environment in which `local_cluster` has its checkpoint on the server, in a folder of the same name."""
    return {
        "CHECKPOINT": f"s3a://{BUCKET}/{folder.name}",
        "HADOOP": json.dumps(server.settings),
        "JARS": str(s3a_jars()),
    }


def serve(port: str) -> None:
    """Serve in this process."""
    from moto.server import main
    from werkzeug.serving import WSGIRequestHandler

    # Python's server asks a client to continue, and Werkzeug, which is built on it, asks again: an SDK takes the
    # second for the response.
    WSGIRequestHandler.handle_expect_100 = lambda handler: True  # type: ignore[method-assign]
    main(["-H", "127.0.0.1", "-p", port])


if __name__ == "__main__":
    serve(sys.argv[1])
