"""Where a checkpoint is stored: a folder of the operating system, or one of an object store that is named by URL.

An object store has neither rename nor append, and no folders: an object is written whole or not at all, and is there
for everyone once it is. `ObjectPath` has those methods of `pathlib.Path` that a checkpoint needs, so that the two are
used alike; the functions of this module do what the two do differently. To add a kind of store, write a function
that opens it as a file system of Arrow, and give its schemes a line in `STORES`.

Settings of a store are Spark's, by their names in Hadoop (`fs.s3a.endpoint`), so that Spark's part of a checkpoint
and Meander's are reached alike. What they leave open follows from the environment (`AWS_ACCESS_KEY_ID`, …), a
profile, or the machine's role.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from meander.dataflow.files import local_path
from meander.errors import ArgumentError

if TYPE_CHECKING:
    from pyarrow import fs

URL = re.compile(r"([a-z][a-z0-9]*)://([^/]+)(.*)", re.IGNORECASE)

Settings = tuple[tuple[str, str], ...]


class ObjectState(NamedTuple):
    """The attributes of an object, by their names in `os.stat_result`; it has no inode, and changes as a whole."""

    st_size: int
    st_mtime_ns: int
    st_ino: int = 0
    st_ctime_ns: int = 0
    st_mode: int = stat.S_IFREG


@dataclass(frozen=True)
class ObjectPath:
    """An object, or all those whose names begin with this and a slash: a folder."""

    url: str
    settings: Settings = field(default=(), repr=False)  # may have secrets

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> ObjectPath:
        return replace(self, url=f"{self.url}/{name}")

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> ObjectPath:
        return replace(self, url=self.url.rpartition("/")[0])

    def resolve(self) -> ObjectPath:
        return self

    def exists(self) -> bool:
        return bool(self._info().type)

    def stat(self) -> ObjectState:
        info = self._info()
        if not info.is_file:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.url)
        return ObjectState(info.size, info.mtime_ns or 0)

    def read_bytes(self) -> bytes:
        with self.open() as file:
            content: bytes = file.read()
            return content

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:
        """The object as a file to read bytes from, at any offset."""
        with self._reached() as (store, path):
            return store.open_input_file(path)

    def write_bytes(self, *parts: bytes | memoryview) -> None:
        """Write the object: it has all of the parts or does not change."""
        with self._reached() as (store, path), store.open_output_stream(path) as stream:
            # The end of the stream makes the object, and fails if a part before it has failed.
            for part in parts:
                stream.write(part)

    def touch(self) -> None:
        self.write_bytes()

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """There are no folders without objects."""

    def unlink(self, missing_ok: bool = False) -> None:
        with suppress(*(FileNotFoundError,) * missing_ok), self._reached() as (store, path):
            store.delete_file(path)

    def iterdir(self) -> Iterator[ObjectPath]:
        from pyarrow.fs import FileSelector

        with self._reached() as (store, path):
            infos = store.get_file_info(FileSelector(path, allow_not_found=True))
        return iter([self / info.base_name for info in infos])

    def remove(self) -> None:
        """Delete all objects of the folder."""
        with suppress(FileNotFoundError), self._reached() as (store, path):
            store.delete_dir(path)

    def _info(self) -> fs.FileInfo:
        with self._reached() as (store, path):
            return store.get_file_info(path)

    @contextmanager
    def _reached(self) -> Iterator[tuple[fs.FileSystem, str]]:
        """The store, and this path in it; what fails there is an error of the operating system with its reason."""
        scheme, bucket, key = split_url(self.url)
        try:
            yield STORES[scheme](bucket, self.settings), f"{bucket}{key}"
        except FileNotFoundError:
            raise
        except OSError as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise OSError(error.errno or errno.EIO, reason, self.url) from error


Location = Path | ObjectPath


# ---------------------------------------------------------------------------------------------------------
# Stores


@cache
def open_s3(bucket: str, settings: Settings) -> fs.FileSystem:
    """Amazon's S3, or any store with its protocol, as the settings of Hadoop's S3A describe it."""
    from pyarrow.fs import S3FileSystem, resolve_s3_region

    def setting(name: str) -> str | None:
        known = dict(settings)
        return known.get(f"fs.s3a.bucket.{bucket}.{name}") or known.get(f"fs.s3a.{name}") or None

    endpoint = (
        setting("endpoint") or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    )
    region = (
        setting("endpoint.region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    )
    options: dict[str, Any] = {"region": region}
    if endpoint is not None:
        insecure = setting("connection.ssl.enabled") == "false"
        scheme, _, host = endpoint.rpartition("://")
        options |= {
            "endpoint_override": host.rstrip("/"),
            "scheme": scheme or ("http" if insecure else "https"),
        }
    elif region is None:
        options["region"] = resolve_s3_region(bucket)
    if "AnonymousAWSCredentialsProvider" in (setting("aws.credentials.provider") or ""):
        options["anonymous"] = True
    elif setting("access.key") is not None:
        options["access_key"], options["secret_key"] = setting("access.key"), setting("secret.key")
        options["session_token"] = setting("session.token")
    with suppress(TypeError):
        # A small object is then one request; the oldest versions of Arrow always make three.
        return S3FileSystem(allow_delayed_open=True, **options)
    return S3FileSystem(**options)


STORES: dict[str, Callable[[str, Settings], fs.FileSystem]] = {"s3a": open_s3, "s3": open_s3}
"""By the scheme of a URL."""

S3_SETTINGS = (
    "endpoint",
    "endpoint.region",
    "connection.ssl.enabled",
    "aws.credentials.provider",
    "access.key",
    "secret.key",
    "session.token",
)
"""The settings of S3A that are used, each as `fs.s3a.NAME` and as `fs.s3a.bucket.BUCKET.NAME`."""


def setting_names(path: Location) -> list[str]:
    """The names of the settings by which a location may be reached."""
    if isinstance(path, Path):
        return []
    bucket = split_url(path.url)[1]
    return [f"fs.s3a.{prefix}{name}" for prefix in ("", f"bucket.{bucket}.") for name in S3_SETTINGS]


# ---------------------------------------------------------------------------------------------------------
# Locations


def location(given: str | Location, settings: Mapping[str, str] = {}) -> Location:
    """The folder of a checkpoint that a path or URL names; `settings` are those of its store that are known."""
    if not isinstance(given, str):
        return given
    match = URL.fullmatch(given)
    if match is None or match.group(1).lower() not in STORES:
        return local_path(given, "checkpoint")
    if not match.group(3).strip("/"):
        raise ArgumentError(
            f"{given} has no folder for a checkpoint",
            hint=f"write {match.group(1)}://{match.group(2)}/FOLDER",
        )
    return with_settings(ObjectPath(given.rstrip("/")), settings)


def with_settings(path: Location, settings: Mapping[str, str]) -> Location:
    """The same location, reached by these settings."""
    if isinstance(path, Path):
        return path
    return replace(path, settings=tuple(sorted((name, value) for name, value in settings.items() if value)))


def settings_of(path: Location) -> dict[str, str]:
    """The settings by which a location is reached."""
    return dict(path.settings) if isinstance(path, ObjectPath) else {}


def stored_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The settings of stores among the options of a data source."""
    return {name: value for name, value in options.items() if name.startswith("fs.")}


def sibling(path: str, beside: Location) -> Location:
    """A file that was recorded by its path or URL, in the same store as `beside` if it is in one."""
    if isinstance(beside, ObjectPath) and URL.fullmatch(path):
        return replace(beside, url=path)
    return Path(path)


def split_url(url: str) -> tuple[str, str, str]:
    """Scheme, bucket, and key with a slash before it."""
    match = URL.fullmatch(url)
    assert match is not None, url
    return match.group(1).lower(), match.group(2), match.group(3)


def children(folder: Location, ending: str = "") -> Sequence[Location]:
    """The files in a folder whose names have this ending, by their names; none if there is no such folder."""
    try:
        found: list[Location] = [path for path in folder.iterdir() if path.name.endswith(ending)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda path: path.name)


def write_whole(path: Location, *parts: bytes | memoryview) -> None:
    """Write a file so that it has all of the parts or does not change, even if the machine stops."""
    if isinstance(path, ObjectPath):
        path.write_bytes(*parts)
        return
    draft = path.with_name(f".{path.name}.draft")
    with open(draft, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def remove_folder(folder: Location) -> None:
    """Delete a folder with all that is in it, if there is one."""
    if isinstance(folder, ObjectPath):
        folder.remove()
    else:
        shutil.rmtree(folder, ignore_errors=True)
