"""The few requests to an object store, with their time-outs and retries; every error is one sentence.

Keys come from the environment of the process that sends a request (for S3 the variables AWS_…) or from its files
(`aws_files`), and stay there. What the store or the library says is not repeated, since it may hold parts of addresses
with a signature.
"""

from __future__ import annotations

import errno
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from typing import Any, BinaryIO

from semistream.core.errors import SemistreamError, StoreUnavailableError
from semistream.core.extras import require
from semistream.store.places import aws_files
from semistream.store.places.aws_files import AwsFiles
from semistream.store.places.place import ObjectStatus

_TIMEOUT, _CONNECT_TIMEOUT = timedelta(seconds=30), timedelta(seconds=5)
_MAX_RETRIES, _RETRY_SECONDS = 6, 60
_CHUNK_BYTES, _MAX_CHUNKS, _CHUNKS_AT_ONCE = 8 << 20, 9000, 2
_SETTINGS = {"s3": "AWS_…", "gs": "GOOGLE_…", "az": "AZURE_…"}


class ObjectClient:
    """A bucket. Cheap to make: a connection is made when something is asked for, in the process that asks."""

    def __init__(self, scheme: str, bucket: str) -> None:
        require("obstore", extra="object-store", purpose=f"A master table at {scheme}://")
        self._scheme = scheme
        self._bucket = bucket

    def status(self, key: str, shown: str) -> ObjectStatus | None:
        """Return size and time of an object; None if there is none."""
        import obstore

        try:
            with self._told(shown):
                return _status(obstore.head(self._store, key))
        except FileNotFoundError:
            return None

    def get(self, key: str, shown: str, max_bytes: int) -> bytes:
        """Return an object; nothing if it has more bytes."""
        import obstore

        with self._told(shown):
            got = obstore.get(self._store, key)
            return bytes(got.bytes()) if got.meta["size"] <= max_bytes else b""

    def get_ranges(self, key: str, shown: str, starts: Sequence[int], ends: Sequence[int]) -> Sequence[Any]:
        """Return stretches of an object, ten requests at a time; what they share must be joined before."""
        import obstore

        with self._told(shown):
            # Its own joining of near ranges is switched off: it knows no bound for what it brings.
            return obstore.get_ranges(self._store, key, starts=starts, ends=ends, coalesce=0)

    def download(self, key: str, shown: str) -> BinaryIO:
        """Return an object in a temporary file."""
        import obstore

        file = tempfile.TemporaryFile(prefix="semistream-")  # noqa: SIM115 - the caller closes it
        try:
            with self._told(shown):
                for chunk in obstore.get(self._store, key).stream(min_chunk_size=_CHUNK_BYTES):
                    file.write(chunk)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def put(self, key: str, shown: str, content: bytes) -> None:
        """Put a small object in the place of one that may be there."""
        import obstore

        with self._told(shown):
            obstore.put(self._store, key, content, use_multipart=False)

    def put_if_absent(self, key: str, shown: str, content: bytes | memoryview) -> bool:
        """Put a small object unless there is one, and say whether it was put."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._told(shown):
            try:
                obstore.put(self._store, key, content, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    def upload(self, key: str, shown: str, descriptor: int) -> None:
        """Put all of a file, in parts if it is large."""
        import obstore

        size_bytes = os.fstat(descriptor).st_size
        if size_bytes > _CHUNK_BYTES:
            self._upload_in_parts(key, shown, descriptor, size_bytes)
            return
        with _from_its_start(descriptor) as file, self._told(shown):
            obstore.put(self._store, key, file.readall(), use_multipart=False)

    def _upload_in_parts(self, key: str, shown: str, descriptor: int, size_bytes: int) -> None:
        import obstore

        try:
            with _from_its_start(descriptor) as file, self._told(shown):
                obstore.put(
                    self._store,
                    key,
                    file,
                    use_multipart=True,
                    chunk_size=max(_CHUNK_BYTES, size_bytes // _MAX_CHUNKS),
                    max_concurrency=_CHUNKS_AT_ONCE,
                )
        except FileNotFoundError:
            # The store knows the parts no more: they may have become the object, and only the answer to that was lost.
            found = self.status(key, shown)
            if found is None or found.size_bytes != size_bytes:
                raise StoreUnavailableError(
                    f"The object store has lost what was sent for {shown}: check that nobody removes unfinished "
                    f"uploads, and try again."
                ) from None

    def delete(self, key: str, shown: str) -> None:
        """Delete an object; it does not matter if it is gone already."""
        import obstore

        with suppress(FileNotFoundError), self._told(shown):
            obstore.delete(self._store, key)

    def listed(self, folder: str, shown: str) -> tuple[dict[str, ObjectStatus], list[str]]:
        """Return the objects directly in a folder by name, and the names of the folders in it."""
        import obstore

        with self._told(shown):
            found = obstore.list_with_delimiter(self._store, folder or None)
        objects = {meta["path"].rpartition("/")[2]: _status(meta) for meta in found["objects"]}
        return objects, [prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"]]

    @property
    def _store(self) -> Any:
        # Of this process: threads of the library do not live on in a forked one.
        return _opened(self._scheme, self._bucket, os.getpid())

    @contextmanager
    def _told(self, shown: str) -> Iterator[None]:
        """Turn errors of the library into ours, which name the object and what to do."""
        from obstore import exceptions

        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            if isinstance(error, FileNotFoundError | exceptions.NotFoundError):
                if "NoSuchBucket" not in str(error):
                    raise FileNotFoundError(errno.ENOENT, "No such object", shown) from None
                told: SemistreamError = SemistreamError(
                    f"There is no bucket {self._bucket} for {shown}: make it, or give another address."
                )
            elif isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError):
                told = SemistreamError(
                    f"The object store refuses access to {shown}: give keys that may read and write there, by "
                    f"{_SETTINGS[self._scheme]} in the environment of the driver and all workers."
                )
            else:
                told = StoreUnavailableError(
                    f"The object store did not answer for {shown} ({_reason(str(error))}): check its address in "
                    f"{_SETTINGS[self._scheme]} and the network, and try again."
                )
        else:
            return
        raise told from None


@contextmanager
def _from_its_start(descriptor: int) -> Iterator[io.FileIO]:
    with io.FileIO(os.dup(descriptor), "rb") as file:
        file.seek(0)
        yield file


@lru_cache(maxsize=16)
def _opened(scheme: str, bucket: str, _process: int) -> Any:
    from obstore.store import from_url

    files = AwsFiles.of(os.environ) if scheme == "s3" else AwsFiles()
    of_files: dict[str, Any] = dict(files.config)
    if files.has_keys:
        of_files["credential_provider"] = aws_files.keys
    return from_url(
        f"{scheme}://{bucket}",
        **of_files,
        client_options={
            "timeout": _TIMEOUT,
            "connect_timeout": _CONNECT_TIMEOUT,
            # The library forgets this variable where other options are given.
            "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true",
        },
        retry_config={
            "max_retries": _MAX_RETRIES,
            "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
        },
    )


def _status(meta: Any) -> ObjectStatus:
    tag = (meta.get("e_tag") or "").strip('"')
    return ObjectStatus(int(meta["size"]), meta["last_modified"].timestamp(), tag)


def _reason(text: str) -> str:
    lowered = text.lower()
    for sign, reason in (
        ("kind: timeout", "it took too long"),
        ("dns error", "its name is not known"),
        ("certificate", "its certificate is not trusted"),
        ("kind: connect", "no connection can be made"),
        ("kind: builder", "its address is not valid; plain http:// needs AWS_ALLOW_HTTP=true"),
        ("credential", "no keys were found"),
        ("slowdown", "it asks to slow down"),
        ("server error", "it has an error of its own"),
    ):
        if sign in lowered:
            return reason
    return "the request failed"
