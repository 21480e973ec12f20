"""Keys for S3 come from the files of Amazon's tools where the environment has none, and show nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from semistream.core.errors import InvalidSettingError
from semistream.store.places import aws_files
from semistream.store.places.aws_files import AwsFiles
from semistream.store.places.choice import place_of

SECRET = "canary%of/files"
CREDENTIALS = f"""
[default]
aws_access_key_id = of-default
aws_secret_access_key = {SECRET}
[other]
aws_access_key_id = of-other
aws_secret_access_key = {SECRET}
aws_session_token = token
"""
CONFIG = """
[default]
region = eu-west-1
[profile other]
region = eu-central-1
endpoint_url = http://127.0.0.1:1
[profile bare]
role_arn = arn:aws:iam::1:role/reader
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of somebody who has both files and no settings in the environment."""
    for name in ("PROFILE", "REGION", "DEFAULT_REGION", "ENDPOINT_URL", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws" / "config").write_text(CONFIG)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


class _Listener(HTTPServer):
    """Remembers who signed the requests that it gets."""

    signers: list[str]


class _Answer(BaseHTTPRequestHandler):
    server: _Listener

    def do_HEAD(self) -> None:
        self.server.signers.append(self.headers["Authorization"])
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[_Listener]:
    server = _Listener(("127.0.0.1", 0), _Answer)
    server.signers = []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("environment", "signer"),
    [
        ({}, "of-default/{}/eu-west-1"),
        ({"AWS_PROFILE": "other"}, "of-other/{}/eu-central-1"),
        ({"AWS_PROFILE": "other", "AWS_REGION": "us-east-1"}, "of-other/{}/us-east-1"),
        ({"AWS_ACCESS_KEY_ID": "of-environment", "AWS_SECRET_ACCESS_KEY": "x"}, "of-environment/{}/eu-west-1"),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_request_is_signed_with_the_key_of_the_profile(
    listener: _Listener, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], signer: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listener.server_port}")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    bucket = f"bucket-{abs(hash(signer))}"
    assert place_of(f"s3://{bucket}/table").status("name") is None
    (authorization,) = listener.signers
    day = authorization.partition("/")[2].partition("/")[0]
    assert f"Credential={signer.format(day)}/s3" in authorization


def test_an_address_of_a_store_in_the_files_counts_unless_the_environment_has_one(home: Path) -> None:
    environment = {"HOME": str(home), "AWS_PROFILE": "other"}
    assert AwsFiles.of(environment).config["endpoint"] == "http://127.0.0.1:1"
    assert "endpoint" not in AwsFiles.of({**environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:2"}).config


def test_keys_are_read_again_when_tools_have_replaced_them(home: Path) -> None:
    assert aws_files.keys()["access_key_id"] == "of-default"
    assert aws_files.keys()["expires_at"] is not None
    path = home / ".aws" / "credentials"
    path.write_text(CREDENTIALS.replace("of-default", "of-later"))
    assert aws_files.keys()["access_key_id"] == "of-later"


def test_without_files_nothing_is_said_and_the_role_of_the_machine_counts(tmp_path: Path) -> None:
    assert AwsFiles.of({"HOME": str(tmp_path)}) == AwsFiles()


@pytest.mark.parametrize("profile", ["bare", "absent"])
def test_a_profile_without_keys_is_an_error_if_it_was_asked_for(home: Path, profile: str) -> None:
    with pytest.raises(InvalidSettingError, match=f"The profile '{profile}' of AWS_PROFILE has no access key"):
        AwsFiles.of({"HOME": str(home), "AWS_PROFILE": profile})


def test_a_file_that_makes_no_sense_is_not_repeated(home: Path) -> None:
    (home / ".aws" / "credentials").write_text(f"{SECRET}\n")
    with pytest.raises(InvalidSettingError, match="is not a file of profiles") as told:
        AwsFiles.of({"HOME": str(home)})
    assert SECRET not in str(told.value)
    assert told.value.__cause__ is None
