"""How the pages that semistream writes look, in a light and a dark form; each page adds what only it has."""

from __future__ import annotations

SHARED_STYLE = """\
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
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 16px; margin-bottom: 16px; }
.tile, figure { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.tile { display: flex; flex-direction: column; padding: 16px 18px; }
.tile .label, .tile .about { color: var(--muted); font-size: 14px; }
.tile .number { font-size: 28px; font-weight: 650; line-height: 1.35; font-variant-numeric: tabular-nums; }
figure { display: flex; flex-direction: column; justify-content: space-between; margin: 0; padding: 16px 18px 8px; }
figcaption p { color: var(--muted); font-size: 14px; }
.muted { color: var(--muted); }
table { width: 100%; margin-top: 8px; border-collapse: collapse; font-size: 15px; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
tr:first-child > * { border-top: 0; }
th { padding-right: 20px; color: var(--muted); font-weight: 400; white-space: nowrap; }
ul { margin: 10px 0 2px; padding-left: 20px; font-size: 15px; }
li + li { margin-top: 6px; }
footer { margin-top: 24px; color: var(--muted); font-size: 14px; }
@media print { body { background: none; } .tile, figure { break-inside: avoid; } }
"""
