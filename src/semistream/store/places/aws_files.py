"""Keys and settings for S3 from the files that Amazon's own tools use, `~/.aws/credentials` and `~/.aws/config`.

They are read in the process that sends a request, as in those tools after the environment and before the role of the
machine. No error repeats a line of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import Error, RawConfigParser
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from semistream.core.errors import InvalidSettingError

_KEYS = ("aws_access_key_id", "aws_secret_access_key")
_OTHER_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
_REGION, _ENDPOINT = ("AWS_REGION", "AWS_DEFAULT_REGION"), ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_READ_AGAIN_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class AwsFiles:
    """What the files say about the profile of this process, as far as the environment says nothing."""

    config: dict[str, str] = field(default_factory=dict)
    """Region and address of the store."""
    has_keys: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> AwsFiles:
        """Read the files; raises InvalidSettingError for a profile that was asked for and has no keys."""
        said = _profile(environment)
        wanted = environment.get("AWS_PROFILE")
        if any(environment.get(name) for name in _OTHER_KEYS):
            has_keys = False
        elif not (has_keys := all(said.get(name) for name in _KEYS)) and wanted:
            raise InvalidSettingError(
                f"The profile {wanted!r} of AWS_PROFILE has no access key in ~/.aws/credentials or ~/.aws/config: add "
                f"aws_access_key_id and aws_secret_access_key there, or set AWS_ACCESS_KEY_ID and "
                f"AWS_SECRET_ACCESS_KEY."
            )
        config = {}
        if said.get("region") and not any(environment.get(name) for name in _REGION):
            config["region"] = said["region"]
        if said.get("endpoint_url") and not any(environment.get(name) for name in _ENDPOINT):
            config["endpoint"] = said["endpoint_url"]
        return cls(config, has_keys)


def keys() -> dict[str, Any]:
    """Return the keys as obstore asks for them, which asks again when they have expired: tools replace them."""
    said = _profile(os.environ)
    return {
        "access_key_id": said[_KEYS[0]],
        "secret_access_key": said[_KEYS[1]],
        "token": said.get("aws_session_token"),
        "expires_at": datetime.now(UTC) + _READ_AGAIN_AFTER,
    }


def _profile(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what both files say about the profile; that of keys counts more, as in Amazon's tools."""
    home = Path(environment.get("HOME") or "~").expanduser() / ".aws"
    name = environment.get("AWS_PROFILE") or "default"
    config = environment.get("AWS_CONFIG_FILE") or home / "config"
    credentials = environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials"
    of_config = _section(Path(config), name if name == "default" else f"profile {name}")
    return {**of_config, **_section(Path(credentials), name)}


def _section(path: Path, name: str) -> dict[str, str]:
    parser = RawConfigParser(strict=False, default_section="", allow_no_value=True)
    try:
        parser.read_string(path.expanduser().read_text(encoding="utf-8"))
    except OSError:
        return {}
    except (Error, UnicodeDecodeError):
        raise InvalidSettingError(
            f"{path} is not a file of profiles: write [default], and below it lines such as region = us-east-1."
        ) from None
    return {key: value for key, value in parser.items(name) if value} if parser.has_section(name) else {}
