"""How a session of Spark and Meander reach the same store of a checkpoint.

With the user's session, Meander takes Spark's settings. A session that Meander starts gets settings that follow from
the environment, as Meander's own access to the store does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from meander.spark.checkpoint.storage import Location, ObjectPath, setting_names, with_settings

STORE_JARS = "MEANDER_S3_JARS"
"""The environment variable that names a folder with the jars of Hadoop's S3A and of Amazon's SDK."""

ENVIRONMENT_OF_S3 = {
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "endpoint.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}


def session_store(spark: Any, folder: Location) -> Location:
    """The folder of a checkpoint, reached as the Spark session reaches its part of it."""
    names = setting_names(folder)
    session = getattr(spark, "_jsparkSession", None) if names else None
    if session is None:
        return with_settings(
            folder, {name: spark.conf.get(f"spark.hadoop.{name}", "") or "" for name in names}
        )
    configuration: Any = session.sessionState().newHadoopConf()
    return with_settings(folder, {name: configuration.get(name) or "" for name in names})


def store_settings(folder: Location) -> dict[str, str]:
    """Settings that let a local Spark reach the store of a checkpoint as Meander does, by the environment."""
    if not isinstance(folder, ObjectPath):
        return {}
    settings = {
        f"fs.s3a.{name}": next((value for variable in variables if (value := os.environ.get(variable))), "")
        for name, variables in ENVIRONMENT_OF_S3.items()
    }
    settings |= {
        "fs.s3a.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
        "fs.s3a.path.style.access": "true" if settings["fs.s3a.endpoint"] else "",
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }
    chosen = {f"spark.hadoop.{name}".replace(".", "__"): value for name, value in settings.items() if value}
    jars = os.environ.get(STORE_JARS)
    if jars:
        return chosen | {"spark__jars": ",".join(sorted(str(jar) for jar in Path(jars).glob("*.jar")))}
    return chosen | {"spark__jars__packages": store_package()}


def store_package() -> str:
    """Hadoop's package for S3, of the version of Hadoop that Spark has."""
    import pyspark

    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    clients = sorted(jar.stem.rpartition("-")[2] for jar in jars.glob("hadoop-client-api-*.jar"))
    return f"org.apache.hadoop:hadoop-aws:{clients[-1] if clients else 'VERSION'}"


def merged_settings(several: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """All of several settings; jars and packages of each are listed."""
    merged: dict[str, str] = {}
    for settings in several:
        for name, value in settings.items():
            listed = name in ("spark__jars", "spark__jars__packages") and name in merged
            known = merged[name].split(",") if listed else []
            merged[name] = ",".join(dict.fromkeys([*known, *value.split(",")])) if listed else value
    return merged
