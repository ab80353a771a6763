"""Writes what `./dev bench peers` found: means in README.md between its markers, and all of it in
docs/generated/peers.md.

    ./dev bench peers-table

A ratio is a peer's time over Heddle's: above 1, Heddle is faster. Geometric means are over the rows
where the peer ran and agreed; that of the best peer takes in each row the fastest one.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from bench.models import tool
from bench.peers.engines import engines

STORE = tool.RESULTS / "peers"
BEGIN = "<!-- peers: begin; written by bench/peers/table.py -->"
END = "<!-- peers: end -->"
BASE, REFERENCE = "heddle", "onnxruntime"
TITLES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "inductor": "Inductor",
          "iree": "IREE", "tvm": "TVM"}


def results(folder=STORE):
    """All results, those of few threads first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda r: (r["threads"], r["model"], r["batch"]))


def ratio_of(result, name):
    """The peer's time over Heddle's, or None where either did not run or differs."""
    report = result["engines"].get(name, {})
    return report.get("ratio") if report.get("status") == "ok" else None


def peers_of(result):
    """Ratios of the peers that have one."""
    ratios = {name: ratio_of(result, name) for name in result["engines"] if name != BASE}
    return {name: ratio for name, ratio in ratios.items() if ratio is not None}


def best_peer(result):
    """(name, ratio) of the fastest peer, or None."""
    return min(peers_of(result).items(), key=lambda item: item[1], default=None)


def memory_ratio(result):
    """ONNX Runtime's peak over Heddle's."""
    both = [result["engines"].get(name, {}).get("peak_bytes") for name in (REFERENCE, BASE)]
    return both[0] / both[1] if all(both) else None


def mean(values):
    """The geometric mean of those that are there, or None."""
    values = [value for value in values if value]
    return statistics.geometric_mean(values) if values else None


def means(found, names):
    """The geometric mean of each peer's ratios, and of the best peers'."""
    best = [best_peer(result) for result in found]
    return ({name: mean(ratio_of(result, name) for result in found) for name in names},
            mean(entry[1] for entry in best if entry), mean(map(memory_ratio, found)))


def number(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def cell(result, name):
    """A ratio, or the word for why there is none."""
    report = result["engines"].get(name)
    if report is None:
        return ""
    return number(ratio_of(result, name)) if report["status"] == "ok" else report["status"]


def known(found):
    """The engines beside Heddle that any result has, in the order of the table."""
    present = {name for result in found for name in result["engines"]}
    return [name for name in engines() if name in present and name != BASE]


def table(found):
    """Markdown: a row a model, batch and number of threads."""
    names = known(found)
    heads = ["model", "batch", "threads", "Heddle ms", *(TITLES[name] for name in names),
             "best peer", "ratio to it", "memory"]
    lines = [f"| {' | '.join(heads)} |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    for result in found:
        best = best_peer(result)
        base = result["engines"].get(BASE, {})
        cells = [result["model"], str(result["batch"]), str(result["threads"]),
                 number(base.get("median_ms"), "{:.3g}") or base.get("status", ""),
                 *(cell(result, name) for name in names),
                 TITLES[best[0]] if best else "", number(best[1]) if best else "",
                 number(memory_ratio(result))]
        lines.append(f"| {' | '.join(cells)} |")
    ratios, best, memory = means(found, names)
    cells = ["**geometric mean**", "", "", "", *(number(ratios[name], "**{:.2f}**")
                                                 for name in names),
             "", number(best, "**{:.2f}**"), number(memory, "**{:.2f}**")]
    return "\n".join([*lines, f"| {' | '.join(cells)} |"])


def heading(found, command):
    """Date, machine and command; the meaning of the columns."""
    dates = sorted({result["date"] for result in found})
    versions = sorted({report["version"] for result in found for report in
                       result["engines"].values() if not report["version"].startswith("heddle")})
    machines = ", ".join(sorted({result["machine"] for result in found}))
    return "\n".join([
        f"{dates[0]}{' to ' + dates[-1] if len(dates) > 1 else ''}, {machines}; `{command}`.",
        f"Peers: {', '.join(versions)}.",
        "Figures of peers are their median time over Heddle's, within rounds in which every engine",
        "has a turn: above 1, Heddle is faster. 'differs': its outputs are not ONNX Runtime's;",
        "'failed': it cannot import, compile or run the model within the limit. Memory is ONNX",
        "Runtime's peak over Heddle's.", ""])


def failures(found):
    """Markdown: who did not run what, and why."""
    lines = ["| model | batch | threads | engine | why |", "|---|--:|--:|---|---|"]
    for result in found:
        for name, report in result["engines"].items():
            if report["status"] == "ok":
                continue
            why = report.get("error") or f"outputs off by {report['worst']:.3g} times the allowed"
            why = why.replace("|", "\\|")[:160]
            lines.append(f"| {result['model']} | {result['batch']} | {result['threads']} "
                         f"| {TITLES.get(name, name)} | {why} |")
    return "\n".join(lines) if len(lines) > 2 else "None."


def cost(report):
    """Time, memory and idle share of an engine on a model."""
    if "median_ms" not in report:
        return ""
    sizes = "/".join(number(report.get(key, 0) / 2**20, "{:.0f}")
                     for key in ("loaded_bytes", "peak_bytes"))
    idle = report.get("idle_cpu", 0)
    return (f"{report['median_ms']:.4g} ({report['q1_ms']:.4g}-{report['q3_ms']:.4g}); "
            f"{report['compile_s']:.1f}+{report['load_s']:.1f}; {sizes}"
            + (f"; idle {idle:.2f}" if idle >= 0.005 else ""))


def costs(found):
    """Markdown: what each engine takes beside time."""
    names = [BASE, *known(found)]
    heads = ["model", "batch", "threads", "Heddle", *(TITLES[name] for name in names[1:])]
    lines = ["Milliseconds (quartiles); seconds to compile + to load; MiB when loaded/at the peak; "
             "idle: the CPU's share of a second after the last run.", "",
             f"| {' | '.join(heads)} |", "|---|--:|--:" + "|---" * len(names) + "|"]
    for result in found:
        cells = [result["model"], str(result["batch"]), str(result["threads"]),
                 *(cost(result["engines"].get(name, {})) for name in names)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(found):
    """Markdown: geometric means, a row for each number of threads."""
    names = known(found)
    heads = ["threads", *(TITLES[name] for name in names), "best peer", "memory"]
    lines = [f"| {' | '.join(heads)} |", "|--:" * len(heads) + "|"]
    for threads in sorted({result["threads"] for result in found}):
        ratios, best, memory = means([each for each in found if each["threads"] == threads], names)
        cells = [str(threads), *map(number, (*(ratios[name] for name in names), best, memory))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def replace(text, content):
    """The text with the content between its markers."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"README.md lacks the markers '{BEGIN}' and '{END}'")
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{content}\n{END}{rest.split(END, 1)[1]}"


def main(arguments=None):
    """Fills README.md and the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--into", type=Path, default=tool.ROOT, metavar="FOLDER",
                        help="to write them to (default: the project)")
    options = parser.parse_args(arguments)
    found = results()
    if not found:
        print("table: there are no results in build/bench/peers; run ./dev bench peers first",
              file=sys.stderr)
        return 1
    readme = tool.ROOT / "README.md"
    page = options.into / "docs" / "generated" / "peers.md"
    try:
        text = "\n".join([heading(found, "./dev bench peers"),
                          f"Geometric means over {len({each['model'] for each in found})} "
                          "networks, each with a batch of 1, and some with 16, too:", "",
                          summary(found), "",
                          "Each model, spread, memory and what did not run: "
                          "[docs/generated/peers.md](docs/generated/peers.md)."])
        content = replace(readme.read_text(encoding="utf-8"), text)
    except ValueError as problem:
        print(f"table: {problem}", file=sys.stderr)
        return 1
    (options.into / "README.md").write_text(content, encoding="utf-8")
    page.parent.mkdir(parents=True, exist_ok=True)
    parts = ["# Heddle beside its peers", "",
             "Written by `./dev bench peers-table`; `bench/README.md` says how it is measured.",
             "", heading(found, "./dev bench peers"), ""]
    for count in sorted({result["threads"] for result in found}):
        some = [result for result in found if result["threads"] == count]
        parts += [f"## {count} thread{'s' if count > 1 else ''}", "", table(some), ""]
    parts += ["## What did not run", "", failures(found), "", "## Time, spread and memory", "",
              costs(found), ""]
    page.write_text("\n".join(parts), encoding="utf-8")
    print(f"{len(found)} results: wrote {options.into / 'README.md'} and {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
