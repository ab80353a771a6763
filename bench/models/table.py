"""Writes the table of numbers of README.md from what `./dev bench` found.

    python -m bench.models.table [--check]

Everything between the two markers is replaced. With --check nothing is written: exit status 1 when
README.md has no markers, which would leave it with numbers that nobody can make again.
"""

import json
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "<!-- numbers: begin; written by bench/models/table.py -->"
END = "<!-- numbers: end -->"


def make_table(results):
    """The markdown of the results, one for each number of threads, fewest threads first."""
    results = sorted(results, key=lambda result: result["threads"])
    first = results[0]
    lines = [f"{first['date']}, {first['machine']}; `{first['command']}`. Milliseconds are medians"
             " of interleaved runs;", "ratio = ONNX Runtime's time / Heddle's, above 1 where Heddle"
             " is faster.", ""]
    heads = ["model", "compile s", "peak MiB", "load ms"]
    for result in results:
        count = f"{result['threads']}t"
        heads += [f"Heddle {count}", f"ORT {count}", f"ratio {count}"]
    lines += [f"| {' | '.join(heads)} |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    timed = [{row["model"]: row for row in result["rows"]} for result in results]
    for name, row in timed[0].items():
        cells = [name, f"{row['compile_s']:.1f}", f"{row['peak_bytes'] / 2**20:.0f}",
                 f"{row['load_ms']:.1f}"]
        for rows in timed:
            other = rows.get(name)
            cells += [f"{other['heddle_ms']:.2f}", f"{other['ort_ms']:.2f}",
                      f"{other['ratio']:.2f}"] if other else ["", "", ""]
        lines.append(f"| {' | '.join(cells)} |")
    means = ["**geometric mean**", "", "", ""]
    for rows in timed:
        mean = statistics.geometric_mean(row["ratio"] for row in rows.values())
        means += ["", "", f"**{mean:.2f}**"]
    lines.append(f"| {' | '.join(means)} |")
    left_out = [f"{entry['model']} ({entry['reason']})" for entry in first["left_out"]]
    if left_out:
        lines += ["", f"Left out: {'; '.join(left_out)}."]
    return "\n".join(lines)


def replace(text, table):
    """The text with the table between its markers."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"README.md lacks the markers '{BEGIN}' and '{END}'")
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END, 1)[1]}"


def main(arguments):
    """Fills README.md."""
    readme = ROOT / "README.md"
    found = sorted((ROOT / "build" / "bench").glob("models-*.json"))
    try:
        if "--check" in arguments:
            replace(readme.read_text(encoding="utf-8"), "")
            return 0
        if not found:
            raise ValueError("there are no results in build/bench; run ./dev bench first")
        results = [json.loads(path.read_text(encoding="utf-8")) for path in found]
        if not all(result["rows"] for result in results):
            raise ValueError("build/bench has results without rows; run ./dev bench again")
        text = replace(readme.read_text(encoding="utf-8"), make_table(results))
    except ValueError as problem:
        print(f"table: {problem}", file=sys.stderr)
        return 1
    readme.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
