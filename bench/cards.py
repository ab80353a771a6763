"""Which card took what, over the models of the catalogue, and by which loops.

    ./dev bench cards [--models NAME...] [--card NAME] [--schedules FOLDER] [--write]

`heddle cards explain` plans each model, without compiling it, and says for each group its loops,
the card that took it, and why others did not. Groups of one card and one nest are a row: how many
there are, and in which models. Letters and sizes are no part of a nest. Groups that no card took
stand at the end, with the reasons of those cards that got farthest. `--schedules` asks with cards
of one's own beside the built-in ones: what would they take?
"""

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from bench.kernels import report
from bench.models import catalogue, tool

PAGE = tool.ROOT / "docs" / "generated" / "cards.md"
SHOWN = 12  # nests of a card that the page shows: those with most groups
OTHER = re.compile(r"^(the group is built around|loops '|element type )")

HEAD = """# Which card takes what?

Written by `./dev bench cards --write`: the plans of {count} models of the catalogue for {target},
{groups} groups. A row has the groups of one card whose loops are the same; letters name loops of
equal sizes, and in brackets stand the ops that decide (docs/spec/cards.md). Of a card's nests
the {shown} with most groups are shown.
"""


@dataclass
class Taken:
    """Groups of one nest that one card took, or none."""
    models: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)

    @property
    def groups(self):
        return self.models.total()


def explain(model, schedules):
    """Asks the command about a model's groups."""
    folders = [word for folder in schedules for word in ("--schedules", folder)]
    return json.loads(tool.checked("cards", "explain", model.path(), "--json", *folders).output)


def reasons_of(group):
    """Why cards that are for such loops and types did not take the group."""
    return [f"{card['card']}: {card['refusal']}" for card in group["cards"]
            if "refusal" in card and not OTHER.match(card["refusal"])]


def collect(answers):
    """{card, or None: {nest: Taken}} of {model: what explain says}."""
    found = defaultdict(lambda: defaultdict(Taken))
    for model, answer in answers.items():
        for group in answer["groups"]:
            taken = found[group["chosen"]][group["loops"]]
            taken.models[model] += 1
            if group["chosen"] is None:
                taken.reasons.update(reasons_of(group))
    return found


def models_text(taken):
    return ", ".join(f"{name} {count}" for name, count in taken.models.most_common())


def most_first(nests):
    return sorted(nests.items(), key=lambda item: (-item[1].groups, item[0]))


def lines(found, shown=None, idle=()):
    """The tables of the page; all nests where `shown` is None."""
    cards = sorted((card for card in found if card), key=lambda card: (-total(found[card]), card))
    yield from report.table(["card", "groups", "nests", "models"], [
        (card, total(found[card]), len(found[card]),
         len({model for taken in found[card].values() for model in taken.models}))
        for card in cards])
    if idle:
        yield from ["", "Cards that took nothing: " + ", ".join(sorted(idle)) + "."]
    for card in cards:
        yield from ["", f"## {card}", ""]
        nests = most_first(found[card])
        yield from report.table(["nest", "groups", "models"], [
            (cell(nest), taken.groups, models_text(taken)) for nest, taken in nests[:shown]])
        if len(nests[shown:] if shown else []):
            rest = sum(taken.groups for _, taken in nests[shown:])
            yield from ["", f"and {len(nests) - shown} nests more, of {rest} groups."]
    yield from ["", "## Groups that no card took", ""]
    none = most_first(found.get(None, {}))
    if not none:
        yield "There are none."
        return
    yield from report.table(["nest", "groups", "models", "why"], [
        (cell(nest), taken.groups, models_text(taken),
         why(taken)) for nest, taken in none])


def why(taken):
    reasons = [reason for reason, _ in taken.reasons.most_common(3)]
    return "; ".join(reasons) or "no card has such loops"


def total(nests):
    return sum(taken.groups for taken in nests.values())


def cell(nest):
    """A nest in a table: one that has no loops is a scalar's."""
    return f"`{nest}`".replace("|", "\\|") if nest else "none"


def main():
    options = argparse.ArgumentParser(description="which card took what, over the catalogue")
    options.add_argument("--models", nargs="+", help="these alone")
    options.add_argument("--card", help="this card alone")
    options.add_argument("--schedules", action="append", default=[], metavar="FOLDER",
                         help="a folder of cards beside the built-in ones")
    options.add_argument("--write", action="store_true",
                         help=f"write {PAGE.relative_to(tool.ROOT)}")
    chosen = options.parse_args()
    if chosen.write and (chosen.models or chosen.card or chosen.schedules):
        options.error("the page is about all models and the built-in cards: --write stands alone")
    models = [catalogue.find(name) for name in chosen.models] if chosen.models else None
    answers = {}
    for model in models or catalogue.models():
        try:
            answers[model.name] = explain(model, chosen.schedules)
        except (catalogue.Missing, RuntimeError) as reason:
            print(f"{model.name}: left out: {reason}", file=sys.stderr)
    if not answers:
        sys.exit("no model could be planned")
    found = collect(answers)
    count = sum(total(nests) for nests in found.values())
    if chosen.card:
        found = {card: nests for card, nests in found.items() if card == chosen.card}
    known = {card["card"] for answer in answers.values() for group in answer["groups"]
             for card in group["cards"]}
    idle = () if chosen.card else known - set(found)
    print(f"{count} groups of {len(answers)} models")
    print("\n".join(lines(found, idle=idle)))
    if chosen.write:
        target = next(iter(answers.values()))["target"]
        head = HEAD.format(count=len(answers), target=target, groups=count, shown=SHOWN)
        PAGE.write_text(head + "\n" + "\n".join(lines(found, SHOWN, idle)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
