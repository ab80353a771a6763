"""The page docs/generated/ops-speed.md of what bench.ops has found."""

from bench.kernels import report
from bench.models import tool
from bench.ops.case import SIZES

PAGE = tool.ROOT / "docs" / "generated" / "ops-speed.md"
LOW, WORST, NOTICEABLE = 0.8, 10, 4.0

# Why a case is slow, by the beginning of its name: told beside it among the worst.
REASONS = {
    "MelWeightMatrix": "all elements are computed; ONNX Runtime fills zeros, and triangles",
    "RoiAlign": "the image is transposed first: pays for many boxes and channels, not for a few",
    "Gather rows": "stores through the cache, where memcpy goes past it",
    "GatherND rows": "stores through the cache, where memcpy goes past it",
    "GatherElements": "indices are read twice: all are checked before the first is used",
    "Softmax": "the exponentials take three quarters of the time",
    "LogSoftmax": "the exponentials take three quarters of the time",
    "Concat columns": "stores through the cache, where memcpy goes past it",
    "EyeLike": "computes all elements in one pass; ONNX Runtime fills with zeros first",
    "MatMulInteger": "with one thread 1.1; two gain 1.35 here, and twice as much there",
    "MaxPool 3x3": "with one thread 1.0; two gain 1.4 here, and 1.9 there",
    "Add": "two operands of 16 MB: see above",
    "Hardmax one row": "the place of the largest is found in a second pass, in lanes of 64 bits",
    "Conv 8 to 16 kHz": "reduces in lanes, which is much for fifteen taps",
    "ConvTranspose": "the product is stored before it is turned: 16 MB more at this size",
    "DFT": "ONNX Runtime's angles are of 32 bits: beside NumPy's transform in f64 its largest "
           "difference is 2 to 180, Heddle's 1e-4",
}

HEAD = """# How fast is each op alone?

Written by `./dev bench ops --threads 1 2 --write`. A ratio is ONNX Runtime's time over
Heddle's: above 1, Heddle is faster. Both run by turns in one process, inputs and outputs in place;
{machine}. Rows of 4,194,304 elements take more than the last cache: with two threads those of two
operands differ between processes by a factor of up to two, for either engine.
"""


def reason_of(name):
    found = [text for begin, text in REASONS.items() if name.startswith(begin)]
    return found[0] if found else ""


def time_text(us):
    return f"{us / 1000:.2f} ms" if us >= 1000 else f"{us:.1f} us"


def lines_of(cases):
    """Rows of a table of cases."""
    return report.table(
        ["op", "size", "heddle", "ONNX Runtime", "ratio", "why"],
        [(each["name"], f"{each['elements']:,}", time_text(each["heddle"]),
          time_text(each["onnxruntime"]), report.spread(each), reason_of(each["name"]))
         for each in cases])


def growth(cases):
    """Cases whose cost an element grows from the usual to the large size by much more than ONNX
    Runtime's does."""
    by_name, found = {}, []
    for each in cases:
        by_name.setdefault(each["name"], {})[each["size"]] = each
    for name, sizes in by_name.items():
        if not {"usual", "large"} <= sizes.keys():
            continue
        steps = sizes["large"]["elements"] / sizes["usual"]["elements"]
        ours, theirs = (sizes["large"][engine] / sizes["usual"][engine] / steps
                        for engine in ("heddle", "onnxruntime"))
        if ours > NOTICEABLE and ours > 1.5 * theirs:
            found.append((name, f"{ours:.1f}", f"{theirs:.1f}"))
    return found


def section(threads, cases):
    """The figures for a number of threads."""
    timed = [each for each in cases if "ratio" in each]
    worst = sorted(timed, key=lambda each: each["ratio"])
    low = [each for each in worst if each["ratio"] < LOW]
    lines = [f"## {threads} thread{'s' if threads > 1 else ''}", "",
             f"{report.summary(timed).capitalize()}; below {LOW}: {len(low)}.", "",
             "### The worst", "", *lines_of(worst[:max(WORST, len(low))])]
    grown = growth(timed)
    if grown:
        lines += ["", "### Cost that grows faster than the number of elements", "",
                  *report.table(["op", "heddle, times an element", "ONNX Runtime"], grown)]
    left = [(each["name"], each["size"], each["left_out"], reason_of(each["name"]))
            for each in cases if "left_out" in each]
    if left:
        lines += ["", "### Not timed", "", *report.table(["op", "size", "reason", "why"], left)]
    return [*lines, ""]


def overview(found):
    """A row for each op: times of Heddle and ratios, by threads and sizes."""
    sizes = [(threads, size) for threads in found for size in SIZES]
    rows = {}
    for threads, cases in found.items():
        for each in cases:
            if "ratio" in each:
                elements, cells = rows.setdefault(each["name"], ({}, {}))
                elements[each["size"]] = f"{each['elements']:,}"
                cells[threads, each["size"]] = f"{time_text(each['heddle'])}, {each['ratio']:.2f}"
    heads = ["op", "elements", *(f"{size}, {threads} thread{'s' * (threads > 1)}"
                                 for threads, size in sizes)]
    return report.table(heads, [
        (name, " / ".join(elements[size] for size in SIZES if size in elements),
         *(cells.get(each, "") for each in sizes))
        for name, (elements, cells) in rows.items()])


def write(found):
    """Writes the page of {threads: cases}."""
    lines = [HEAD.format(machine=report.machine())]
    for threads, cases in found.items():
        lines += section(threads, cases)
    lines += ["## All", "", "Heddle's time, and the ratio.", "", *overview(found), ""]
    PAGE.write_text("\n".join(lines), encoding="utf-8")
