"""How the demo's page looks, beside what all pages share."""

from __future__ import annotations

from semistream.html.shared_style import SHARED_STYLE

DEMO_PAGE_STYLE = (
    SHARED_STYLE
    + """\
.proof { display: flex; gap: 12px; align-items: baseline; margin: 24px 0; padding: 14px 18px; border-radius: 10px; }
.proof.holds { background: var(--good-card); color: var(--good); }
.proof.fails { background: var(--bad-card); color: var(--bad); }
.proof span { color: var(--ink); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 16px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 6px 0 4px; }
.key { display: inline-flex; align-items: center; gap: 7px; }
.swatch { width: 14px; height: 4px; border-radius: 2px; background: currentColor; }
.swatch.dashes { background: repeating-linear-gradient(90deg, currentColor 0 4px, transparent 4px 7px); }
svg { display: block; width: 100%; height: auto; }
.first { color: var(--first); } .second { color: var(--second); } .third { color: var(--third); }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.line.dashes { stroke-dasharray: 6 5; stroke-linecap: butt; }
.area { fill: currentColor; fill-opacity: 0.72; }
.bar, .dot { fill: currentColor; }
.grid { stroke: var(--line); stroke-width: 1; }
.tick { fill: var(--muted); font-size: 12px; font-variant-numeric: tabular-nums; }
.hint { fill: transparent; }
.hint:hover { fill: var(--ink); fill-opacity: 0.07; }
.rest { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 16px;
  margin-top: 16px; align-items: start; }
.rest > div { padding: 16px 18px; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
td { width: 100%; }
h2.next { margin-top: 20px; }
@media print { .proof, .rest > div { break-inside: avoid; } }
"""
)
