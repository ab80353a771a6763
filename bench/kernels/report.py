"""Reports of ratios: means and tables, and the figures of the last run."""

import argparse
import datetime
import json
import math
import os

from bench.models import tool

STORE = tool.RESULTS / "kernels"


def geometric_mean(values):
    """The geometric mean of ratios; 1 where there are none."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1.0


def summary(found):
    """The geometric mean of ratios and their extremes, in a line."""
    ratios = [each["ratio"] for each in found]
    if not ratios:
        return "none"
    below = [sum(value < bound for value in ratios) for bound in (0.9, 0.95, 1.0)]
    return (f"geometric mean {geometric_mean(ratios):.3f} of {len(ratios)}, least "
            f"{min(ratios):.2f}, greatest {max(ratios):.2f}; below 0.9: {below[0]}, below 0.95: "
            f"{below[1]}, below 1: {below[2]}")


def spread(each):
    """A ratio as a table has it."""
    return f"{each['ratio']:.2f} [{each['q1']:.2f}..{each['q3']:.2f}]"


def table(heads, rows):
    """Lines of a table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def machine():
    """A line on the machine, now."""
    return f"{tool.machine()}, load {os.getloadavg()[0]:.1f}, {datetime.date.today()}"


def arguments(doc, rounds, turn_ms):
    """The options that these commands share."""
    options = argparse.ArgumentParser(description=doc.splitlines()[0])
    options.add_argument("--rounds", type=int, default=rounds)
    options.add_argument("--turn", type=float, default=turn_ms, help="milliseconds of a turn")
    options.add_argument("--only", default="", help="those whose name has this in it")
    options.add_argument("--last", action="store_true", help="tell what the last run measured")
    return options


def last(name):
    """The figures of the last run of a command."""
    place = STORE / f"{name}.json"
    if not place.exists():
        raise SystemExit(f"there is no {place}: './dev bench {name}' without --last makes it")
    return json.loads(place.read_text(encoding="utf-8"))["found"]


def tell(name, given, measure, lines):
    """Publishes `lines(found)` of what `measure(given)` yields, or of what the last run found."""
    found = last(name) if given.last else list(measure(given))
    publish(name, list(lines(found)), found, given)


def publish(name, lines, found, given):
    """Prints the lines, and keeps what was found as JSON."""
    STORE.mkdir(parents=True, exist_ok=True)
    place = STORE / f"{name}.json"
    if not given.last:
        kept = {"machine": machine(), "options": vars(given), "found": found}
        place.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    kept = json.loads(place.read_text(encoding="utf-8"))
    lines = [f"`./dev bench {name}`, {kept['options']['rounds']} rounds, turns of "
             f"{kept['options']['turn']:g} ms; {kept['machine']}.", "", *lines]
    print("\n".join(lines), flush=True)
