"""report: what was chosen, as text and as JSON.

SPDX-License-Identifier: Apache-2.0
"""


class Report:
    """`facts`: a dictionary of plain values; the text is made of it."""

    def __init__(self, facts):
        self.facts = facts

    def __str__(self):
        if not self.facts["groups"]:
            return (f"precision  no product of the model can be in {self.facts['kind']}; 'heddle "
                    "explain' says what computes them")
        return "\n".join([*self._head(), *self._groups()])

    def _head(self):
        facts, data = self.facts, self.facts["data"]
        chosen = sum(group["precision"] != "f32" for group in facts["groups"])
        yield (f"precision  {chosen} of {len(facts['groups'])} products in {facts['kind']}; error "
               f"{facts['error']:.3g}, allowed is {facts['tolerance']:.3g}")
        what = "random inputs, real ones have other errors" if data["random"] else "as given"
        where = (f"{data['held_out']} others confirm it" if data["held_out"] else
                 "none are left to confirm it: give two or more")
        yield f"samples    {data['searched']} were searched on ({what}), {where}"
        yield f"time       {self._time()}"
        yield f"compiled   {facts['compiled']} times, {facts['search_seconds']:.1f} s"

    def _time(self):
        facts = self.facts
        if facts["run_seconds"] is None:
            share = f"{facts['saved'] / facts['seconds']:.0%} of a run would be saved"
            return (f"{share} by an estimate for typical sizes; nothing was timed"
                    if facts["is_untimed"] else
                    f"{share} if such products took half of the time; here they are emulated")
        runs = facts["run_seconds"]
        return (f"{1e6 * runs['f32']:.0f} us a run in f32, {1e6 * runs['chosen']:.0f} us so, "
                f"{1e6 * runs[facts['kind']]:.0f} us with all in {facts['kind']}")

    def _groups(self):
        kind = self.facts["kind"]
        about = "us, estimated" if self.facts["is_untimed"] else "us in f32"
        head = ("product", "precision", about, f"saved by {kind}", f"error by {kind}")
        rows = [head, *(self._row(group) for group in self.facts["groups"])]
        widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
        yield ""
        for row in rows:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()

    @staticmethod
    def _row(group):
        others = group["groups"] - 1
        beside = f" with {others} other{'s' * (others > 1)}" if others else ""
        return (group["name"], group["precision"], f"{1e6 * group['seconds']:.1f}",
                f"{1e6 * group['saved']:.1f}",
                f"{group['error']:.3g}{beside}")
