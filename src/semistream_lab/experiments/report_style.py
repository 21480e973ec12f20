"""How the lab's report looks, beside what all pages share."""

from __future__ import annotations

from semistream.html.shared_style import SHARED_STYLE

REPORT_STYLE = (
    SHARED_STYLE
    + """\
header { margin-bottom: 24px; }
h2 { margin: 44px 0 4px; font-size: 22px; letter-spacing: -0.01em; }
h3 { margin: 0; font-size: 18px; line-height: 1.35; }
h3 .id { margin-left: 8px; color: var(--muted); font-weight: 400; font-size: 14px; }
h4 { margin: 18px 0 0; font-size: 15px; }
.card { margin-top: 16px; padding: 20px 22px; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
.says { max-width: 90ch; color: var(--muted); }
.note { margin: 0 0 16px; padding: 12px 18px; border-radius: 10px; background: var(--bad-card); }
.tile .number.holds, b.holds { color: var(--good); }
.tile .number.fails, b.fails { color: var(--bad); }
b.unjudged { color: var(--muted); }
b.holds, b.fails, b.depends, b.unjudged { font-weight: 650; white-space: nowrap; }
.contents { columns: 3 280px; margin: 8px 0 0; padding: 0; list-style: none; font-size: 14px; }
.contents li { margin: 0 0 3px; break-inside: avoid; }
.scroll { overflow-x: auto; }
table { margin-top: 10px; font-size: 14px; }
thead th { padding: 6px 18px 6px 0; color: var(--muted); font-weight: 600; vertical-align: bottom; border-top: 0;
  white-space: normal; }
tbody tr:first-child > * { border-top: 1px solid var(--line); }
td { padding-right: 18px; }
td:last-child, th:last-child { padding-right: 0; }
tbody th { color: var(--ink); font-variant-numeric: tabular-nums; }
.claims { table-layout: fixed; min-width: 900px; }
.claims td { overflow-wrap: anywhere; }
.claims .number { width: 50px; } .claims td:first-child { white-space: nowrap; }
.claims .verdict { width: 122px; } .claims .orders { width: 92px; }
.claims .flips { width: 132px; } .claims .claim { width: 34%; }
.small { display: block; margin-top: 2px; color: var(--muted); font-size: 13px; line-height: 1.4; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 16px;
  margin-top: 14px; }
.figures.wide { grid-template-columns: 1fr; }
figure { padding: 12px 12px 8px; background: #ffffff; color: #1b2330; justify-content: flex-start; }
figure img { display: block; width: 100%; max-width: 560px; height: auto; margin: 0 auto; }
.wide figure img { max-width: 960px; }
figcaption { margin-top: 6px; font-size: 13px; color: #5d6878; text-align: center; }
.numbers { width: auto; min-width: 50%; }
.numbers td, .numbers thead th { text-align: right; white-space: nowrap; }
.numbers thead th:first-child { text-align: left; }
.numbers td.why { min-width: 30ch; text-align: left; white-space: normal; }
.numbers .sure { color: var(--muted); font-size: 12px; }
details { margin-top: 14px; font-size: 14px; }
summary { cursor: pointer; color: var(--first); }
.settings { margin-top: 12px; color: var(--muted); font-size: 13px; }
@media print { .card { break-inside: auto; } h3, h4 { break-after: avoid; } }
"""
)
