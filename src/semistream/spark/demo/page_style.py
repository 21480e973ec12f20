"""How the demo's page looks, in a light and a dark form."""

from __future__ import annotations

STYLE = """\
:root {
  --page: #f6f7f9; --card: #ffffff; --ink: #1b2330; --muted: #5d6878; --line: #e1e5eb;
  --first: #1f6fd6; --second: #e08a1e; --third: #b3325f; --good: #17794b; --good-card: #e7f5ee;
  --bad: #b3261e; --bad-card: #fceceb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161c; --card: #1a2029; --ink: #e6eaf0; --muted: #9aa6b6; --line: #2c3540;
    --first: #5aa2ff; --second: #f0a94b; --third: #f07aa3; --good: #6fd3a2; --good-card: #15301f;
    --bad: #ff9d94; --bad-card: #3a1917;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 40px 24px 56px; }
h1 { margin: 0 0 8px; font-size: 30px; line-height: 1.2; letter-spacing: -0.01em; }
h2 { margin: 0; font-size: 17px; }
p { margin: 0; }
a { color: var(--first); }
code { font: 0.92em ui-monospace, "DejaVu Sans Mono", monospace; }
.lead { max-width: 78ch; color: var(--muted); font-size: 17px; }
.proof { display: flex; gap: 12px; align-items: baseline; margin: 24px 0; padding: 14px 18px; border-radius: 10px; }
.proof.holds { background: var(--good-card); color: var(--good); }
.proof.fails { background: var(--bad-card); color: var(--bad); }
.proof span { color: var(--ink); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 16px; margin-bottom: 16px; }
.tile, figure, .rest > div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.tile { display: flex; flex-direction: column; padding: 16px 18px; }
.tile .label, .tile .about { color: var(--muted); font-size: 14px; }
.tile .number { font-size: 28px; font-weight: 650; line-height: 1.35; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 16px; }
figure { display: flex; flex-direction: column; justify-content: space-between; margin: 0; padding: 16px 18px 8px; }
figcaption p { color: var(--muted); font-size: 14px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 6px 0 4px; }
.key { display: inline-flex; align-items: center; gap: 7px; }
.swatch { width: 14px; height: 4px; border-radius: 2px; background: currentColor; }
.swatch.dashes { background: repeating-linear-gradient(90deg, currentColor 0 4px, transparent 4px 7px); }
svg { display: block; width: 100%; height: auto; }
.first { color: var(--first); } .second { color: var(--second); } .third { color: var(--third); }
.muted { color: var(--muted); }
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
.rest > div { padding: 16px 18px; }
table { width: 100%; margin-top: 8px; border-collapse: collapse; font-size: 15px; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
tr:first-child > * { border-top: 0; }
th { padding-right: 20px; color: var(--muted); font-weight: 400; white-space: nowrap; }
td { width: 100%; }
h2.next { margin-top: 20px; }
ul { margin: 10px 0 2px; padding-left: 20px; font-size: 15px; }
li + li { margin-top: 6px; }
footer { margin-top: 24px; color: var(--muted); font-size: 14px; }
@media print { body { background: none; } .proof, .tile, figure, .rest > div { break-inside: avoid; } }
"""
