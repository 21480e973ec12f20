"""The live page in a real browser: its figures, its looks on any screen, and content that wants to break out."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from headless_browser import HeadlessBrowser
from recorded_batches import batch, counts, run_of

from semistream.pipeline.live.about import AboutPipeline
from semistream.pipeline.live.board import LiveBoard
from semistream.pipeline.live.master_watch import MasterFacts
from semistream.pipeline.live.page import page_answer
from semistream.pipeline.live.server import LiveServer, json_answer
from semistream.spark.batch_progress import MirrorNumbers

HOSTILE = "<img src=x onerror=\"window.broken='yes'\"></script><script>window.broken='yes'</script>'\"&amp;"
SHOWN = "document.getElementById('rows-in').textContent !== '–'"
SIZES = {"wide": (1200, 900), "narrow": (390, 800)}


@pytest.fixture(scope="module")
def browser() -> Iterator[HeadlessBrowser]:
    with HeadlessBrowser() as opened:
        yield opened


class Served:
    """A board with its page, at an address."""

    def __init__(self, **changes: Any) -> None:
        settings: dict[str, Any] = {
            "name": "sales",
            "source": "json incoming",
            "sink": "parquet warehouse",
            "trigger_seconds": 1.0,
            "available_now": False,
            "max_batch_seconds": 600.0,
            "max_master_age_seconds": None,
            "tells_keys": True,
        }
        table = changes.pop("table", "products")
        masters = [MasterFacts(table, "/products", 7, time.time() - 3_700, 2_000_000, 2, 41.0)]
        self.board = LiveBoard(AboutPipeline(**{**settings, **changes}), lambda: masters)
        self.server = LiveServer("127.0.0.1", 0, {"/": page_answer, "/state": lambda: json_answer(self.board.state())})
        self.server.start()

    @property
    def url(self) -> str:
        """The address of the page."""
        return self.server.url


@pytest.fixture
def served() -> Iterator[Served]:
    page = Served()
    for one in run_of(60, start=time.time() - 61, keys=5):
        page.board.add(one)
    yield page
    page.server.stop()


def value(browser: HeadlessBrowser, element: str) -> Any:
    """Return the exact value that an element shows."""
    return json.loads(browser.evaluate(f"document.querySelector({element!r}).dataset.value"))


def text(browser: HeadlessBrowser, element: str) -> str:
    shown: str = browser.evaluate(f"document.querySelector({element!r}).textContent")
    return shown


def test_the_figures_in_the_browser_are_those_of_the_json_lines(browser: HeadlessBrowser, served: Served) -> None:
    state = served.board.state()
    (line,) = state["last"]
    browser.show_as(*SIZES["wide"])
    browser.open(served.url)
    browser.wait_for(SHOWN)
    assert value(browser, "#rows-in") == state["totals"]["rows_in"]
    assert text(browser, "#rows-in") == f"{state['totals']['rows_in']:,}"
    assert text(browser, "#rows-in-about") == f"last batch {line['batch_rows_in']:,}"
    assert text(browser, "#rows-out-about") == f"last batch {line['batch_rows_out']:,}"
    assert value(browser, "#backlog") == line["backlog"]
    assert text(browser, "#headline") == state["verdict"]["headline"]
    hits = browser.evaluate("charts.answers.values.get('cache').textContent")
    assert hits == f"{100 * line['cache_hits'] / line['tuples_in']:.1f}%"
    browser.evaluate("document.getElementById('counters').open = true")
    browser.wait_for("document.querySelectorAll('#lines tr').length > 0")
    rows = "Object.fromEntries([...document.querySelectorAll('#lines tr')].map(row => [row.cells[0].textContent, "
    told = browser.evaluate(rows + "JSON.parse(row.cells[1].dataset.value)]))")
    assert told == json.loads(json.dumps(line))
    assert browser.complaints() == []
    assert {url.removeprefix(served.url) for url in browser.requested() if url.startswith(served.url)} == {"", "state"}
    assert all(url.startswith("http://127.0.0.1:") for url in browser.requested()), "nothing comes from elsewhere"


def test_the_page_follows_the_run_and_can_be_paused(browser: HeadlessBrowser, served: Served) -> None:
    browser.open(served.url)
    browser.wait_for(SHOWN)
    served.board.add(batch(77, began=time.time(), rows_in=123_456, backlog=3))
    browser.wait_for("document.getElementById('rows-in-about').textContent === 'last batch 123,456'")
    browser.evaluate("document.getElementById('pause').focus()")
    browser.press("Enter", 13)
    browser.evaluate("document.getElementById('pause').click()")
    assert browser.evaluate("document.getElementById('pause').getAttribute('aria-pressed')") == "true"
    served.board.add(batch(78, began=time.time(), rows_in=5))
    time.sleep(2.5)
    assert text(browser, "#rows-in-about") == "last batch 123,456"
    browser.evaluate("document.getElementById('pause').click()")
    browser.wait_for("document.getElementById('rows-in-about').textContent === 'last batch 5'")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_fits_any_screen_and_colours_can_be_read(
    browser: HeadlessBrowser, served: Served, size: str, dark: bool, tmp_path: Path
) -> None:
    width, height = SIZES[size]
    browser.show_as(width, height, dark=dark)
    browser.open(served.url)
    browser.wait_for(SHOWN)
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000
    assert browser.evaluate("document.documentElement.scrollWidth") <= width, (
        "nothing is cut off or must be scrolled to"
    )
    wider = "[...document.querySelectorAll('main *')].filter(one => !one.closest('svg, .unseen, thead') "
    wider += f"&& one.getBoundingClientRect().right > {width} + 1).map(one => one.outerHTML.slice(0, 80))"
    assert browser.evaluate(wider) == []
    for element in (".headline", ".detail", ".tile .label", ".tile .number", ".flow .arrow span", "footer"):
        assert browser.evaluate(CONTRAST.replace("ELEMENT", json.dumps(element))) >= 4.5, element


CONTRAST = """(() => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).map(Number), [r, g, b] = parts.slice(0, 3).map((one) => {
      const share = one / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let one = document.querySelector(ELEMENT), ground = one;
  while (/, 0\\)$|transparent/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
  const pair = [getComputedStyle(one).color, getComputedStyle(ground).backgroundColor].map(light).sort((a, b) => b - a);
  return (pair[0] + 0.05) / (pair[1] + 0.05);
})()"""


def test_nothing_moves_when_numbers_change(browser: HeadlessBrowser, served: Served) -> None:
    places = "[...document.querySelectorAll('.flow li, .tile, .figures figure, .verdict, .card')].map("
    places += (
        "one => { const box = one.getBoundingClientRect(); return [box.x, box.y + scrollY, box.width, box.height]; })"
    )
    browser.show_as(*SIZES["wide"])
    browser.open(served.url)
    browser.wait_for(SHOWN)
    before = browser.evaluate(places)
    for one in run_of(3, start=time.time(), keys=5, seed=9):
        served.board.add(one)
    browser.wait_for("document.getElementById('since').textContent.includes('63 batches')")
    assert browser.evaluate(places) == before


def test_charts_can_be_read_with_the_keyboard(browser: HeadlessBrowser, served: Served) -> None:
    browser.open(served.url)
    browser.wait_for(SHOWN)
    label = "document.querySelector('#chart-rates svg').getAttribute('aria-label')"
    latest = browser.evaluate(label)
    assert latest.startswith("Rows a second at ")
    browser.evaluate("document.querySelector('#chart-rates svg').focus()")
    for _ in range(3):
        browser.press("ArrowLeft", 37)
    assert browser.evaluate(label) != latest
    unnamed = "[...document.querySelectorAll('svg[role=img], button, input, section')].filter(one => "
    unnamed += "!one.ariaLabel && !one.textContent.trim() && !(one.labels && one.labels.length)).length"
    assert browser.evaluate(unnamed) == 0
    assert browser.evaluate("document.querySelector('[role=status]').ariaLive") == "polite"


def test_hostile_names_and_keys_are_only_text(browser: HeadlessBrowser) -> None:
    page = Served(name=HOSTILE, source=HOSTILE, sink=HOSTILE, table=HOSTILE)
    page.board.follow_mirrors(lambda: {"/products": MirrorNumbers(3, 5.0, 2, 1, 10, 1)})
    try:
        one = counts(name=HOSTILE, hot_keys=[(HOSTILE, 5)], unmatched_keys=[(HOSTILE, 5)], memory_parts={HOSTILE: 5})
        other = counts(name="other " + HOSTILE)
        page.board.add(batch(began=time.time(), query=HOSTILE, query_id=HOSTILE, enrichments=(one, other)))
        browser.show_as(*SIZES["narrow"])
        browser.open(page.url)
        browser.wait_for(SHOWN)
        browser.evaluate("document.getElementById('counters').open = true")
        browser.wait_for("document.querySelectorAll('#lines tr').length > 0")
        assert browser.evaluate("window.broken") is None
        assert browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert text(browser, "#name") == HOSTILE
        assert text(browser, ".keys th") == HOSTILE
        assert browser.evaluate("document.documentElement.scrollWidth") <= SIZES["narrow"][0]
    finally:
        page.server.stop()


def test_numbers_of_rows_that_wait_are_shown_where_there_are_any(browser: HeadlessBrowser, served: Served) -> None:
    rows = "Object.fromEntries([...document.querySelectorAll('#rows-apart figure')[0].querySelectorAll('tr')].map("
    rows += "row => [...row.cells].map(cell => cell.textContent)))"
    browser.open(served.url)
    browser.wait_for(SHOWN)
    assert set(browser.evaluate(rows)) == {"Latency, median", "Latency, 99 of 100 rows", "Latency, slowest row"}
    times = {
        "oldest_seconds": 75.0,
        "latency_p50_seconds": 0.2,
        "latency_p99_seconds": 9.5,
        "max_latency_seconds": 10.0,
    }
    one = counts(waiting=1_200, parked=34, returned=7, released=5, dead=2, **times)
    served.board.add(batch(61, began=time.time(), enrichments=(one,)))
    browser.wait_for("document.querySelector('main').textContent.includes('Rows that wait')")
    assert browser.evaluate(rows) == {
        "Waiting in the room": "1,200",
        "Parked": "34",
        "Back from the room": "7",
        "Released": "5",
        "Dead letters": "2",
        "Oldest row in the room": "1 min 15 s",
        "Latency, median": "0.20 s",
        "Latency, 99 of 100 rows": "9.5 s",
        "Latency, slowest row": "10 s",
    }


def test_a_backlog_that_nobody_tells_is_not_shown_as_none(browser: HeadlessBrowser) -> None:
    page = Served()
    legend = "document.querySelector('#chart-backlog .legend b').textContent"
    try:
        for number in range(3):
            page.board.add(batch(number, began=time.time() - 9 + number))
        browser.open(page.url)
        browser.wait_for(SHOWN)
        assert (text(browser, "#backlog"), browser.evaluate(legend)) == ("–", "–")
        assert browser.evaluate("document.querySelectorAll('#chart-backlog .dot').length") == 0
        page.board.add(batch(3, began=time.time(), backlog=70))
        browser.wait_for(f"{legend} === '70'")
    finally:
        page.server.stop()


def test_a_page_whose_pipeline_is_gone_says_so(browser: HeadlessBrowser, served: Served) -> None:
    browser.open(served.url)
    browser.wait_for(SHOWN)
    served.server.stop()
    browser.wait_for("document.getElementById('headline').textContent === 'No answer from the pipeline.'")
    assert text(browser, "#detail").startswith("It has stopped, or cannot be reached. Last heard from at ")
    with pytest.raises(OSError, match="refused"):
        http.client.HTTPConnection("127.0.0.1", served.server.port, timeout=5).request("GET", "/")
