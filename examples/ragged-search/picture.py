"""The times of the batches as an SVG, written by hand: it needs no package."""

import html

COLOURS = {"padded": "#d55e00", "ragged": "#0072b2"}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 320, 60, 280, 48


def text(x, y, content, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(content)}</text>'


def tick_of(most):
    """A round step that gives four to ten ticks."""
    step = 0.001
    while most / step > 10:
        step *= 2.5 if f"{step:g}".lstrip("0.").startswith("2") else 2
    return step


def draw(times, path):
    """Writes {name: milliseconds of each batch}."""
    most, count = max(map(max, times.values())), len(next(iter(times.values())))
    wide = (WIDTH - LEFT - 10) / count

    def height(ms):
        return BOTTOM - (BOTTOM - TOP) * ms / most

    step = tick_of(most)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
             text(LEFT, 18, "ms of each batch, in the order in which they came")]
    for i in range(int(most / step) + 1):
        y = height(i * step)
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
                  text(LEFT - 6, y + 4, f"{i * step:g}", "end")]
    for number, (name, found) in enumerate(times.items()):
        colour = COLOURS[name]
        parts += [f'<rect x="{LEFT + 90 * number}" y="28" width="10" height="10" fill="{colour}"/>',
                  text(LEFT + 90 * number + 15, 37, name)]
        for batch, ms in enumerate(found):
            x, y = LEFT + wide * (batch + 0.1 + 0.4 * number), height(ms)
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{0.4 * wide:.1f}" '
                         f'height="{BOTTOM - y:.1f}" fill="{colour}"><title>batch {batch + 1}, '
                         f"{name}: {ms:.2f} ms</title></rect>")
    for batch in range(0, count, max(1, count // 12)):
        parts.append(text(LEFT + wide * (batch + 0.5), BOTTOM + 16, str(batch + 1), "middle"))
    parts += [text((LEFT + WIDTH) / 2, HEIGHT - 6, "batch", "middle"), "</svg>", ""]
    path.write_text("\n".join(parts), encoding="utf-8")
