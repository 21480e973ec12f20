"""The page as one text: markup, style and script, with the policy that lets a browser load nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from semistream.html.shared_style import SHARED_STYLE
from semistream.pipeline.live.server import Answer


@cache
def page_answer() -> Answer:
    """Return the page, which is the same for every pipeline: names and numbers come to it by /state."""
    folder = files(__package__)
    style = SHARED_STYLE + (folder / "live.css").read_text(encoding="utf-8")
    script = "".join((folder / name).read_text(encoding="utf-8") for name in ("charts.js", "live.js"))
    markup = (folder / "live.html").read_text(encoding="utf-8")
    page = markup.replace("/* style */", style).replace("/* script */", script)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; connect-src 'self'; "
        "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    return Answer(page.encode(), "text/html; charset=utf-8", policy=policy)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
