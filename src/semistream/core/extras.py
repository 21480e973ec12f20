"""What is installed only on request: the packages that the extras bring."""

from __future__ import annotations

from importlib.util import find_spec

from semistream.core.errors import MissingExtraError


def require(package: str, *, extra: str, purpose: str) -> None:
    """Raise an error that names the extra unless `package` can be imported; nothing is imported."""
    if find_spec(package) is None:
        raise missing(package, extra=extra, purpose=purpose)


def missing(package: str, *, extra: str, purpose: str) -> MissingExtraError:
    """Return the error that `purpose` needs a package that is not installed."""
    return MissingExtraError(
        f"{purpose} needs the package {package}, which is not installed: `pip install 'semistream[{extra}]'`.",
        name=package,
    )
