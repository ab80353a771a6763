"""Draws the ratios as an SVG: a row a model and batch, a mark an engine, on a logarithmic axis.

Written by hand rather than by a library: the file is small, diffs are read, and its text is text.
"""

import html
import math

from bench.peers import table

COLOURS = {"onnxruntime": "#0072b2", "openvino": "#d55e00", "inductor": "#cc79a7",
           "inductor_autotune": "#882255", "iree": "#009e73", "tvm": "#999999",
           "tvm_tuned": "#444444", "heddle_static": "#e69f00"}
LEFT, RIGHT, TOP, ROW = 215, 30, 64, 18
LOW, HIGH, WIDTH = 0.25, 64.0, 900
TICKS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)


def place(ratio):
    """The x of a ratio; what is beyond the axis lies on its end."""
    share = (math.log2(min(max(ratio, LOW), HIGH)) - math.log2(LOW)) / math.log2(HIGH / LOW)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def text(x, y, content, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">'
            f"{html.escape(content)}</text>")


def legend(names):
    parts, x = [], LEFT
    for name in names:
        parts += [f'<circle cx="{x}" cy="34" r="4" fill="{COLOURS[name]}"/>',
                  text(x + 8, 38, table.TITLES[name])]
        x += 26 + 6.4 * len(table.TITLES[name])
    return parts


def axis(bottom):
    parts = []
    for tick in TICKS:
        colour = "#000" if tick == 1 else "#ddd"
        parts += [f'<line x1="{place(tick):.1f}" x2="{place(tick):.1f}" y1="{TOP}" y2="{bottom}" '
                  f'stroke="{colour}"/>', text(place(tick), TOP - 6, f"{tick:g}", "middle")]
    return parts


def draw(found, path):
    """Writes the picture of the results."""
    names, y = table.known(found), TOP + ROW
    rows = []
    for result in found:
        label = f"{result['model']} b{result['batch']} {result['threads']}t"
        rows.append(text(LEFT - 12, y + 4, label, "end"))
        for name in names:
            ratio = table.ratio_of(result, name)
            if ratio is not None:
                rows.append(f'<circle cx="{place(ratio):.1f}" cy="{y}" r="4" '
                            f'fill="{COLOURS[name]}" fill-opacity="0.85"><title>'
                            f"{table.TITLES[name]}: {ratio:.2f}</title></circle>")
        y += ROW
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 8}" '
             'font-family="sans-serif" font-size="11">',
             f'<rect width="{WIDTH}" height="{y + 8}" fill="#fff"/>',
             text(LEFT, 16, "time of a peer / time of Heddle; right of 1, Heddle is faster",
                  weight="bold"), *legend(names), *axis(y - ROW / 2), *rows, "</svg>", ""]
    path.write_text("\n".join(parts), encoding="utf-8")
