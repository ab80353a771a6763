"""Tables that `./dev bench cards` makes of the answers of `heddle cards explain`."""

from bench import cards


def group(chosen, loops, refusals):
    asked = [{"card": name, "offered": not why} | ({"refusal": why} if why else {})
             for name, why in refusals.items()]
    return {"chosen": chosen, "loops": loops, "cards": asked}


ANSWERS = {
    "one": {"groups": [group("matmul", "m:p { k:s(dot) }", {"matmul": ""}),
                       group("matmul", "m:p { k:s(dot) }", {"matmul": ""}),
                       group(None, "m:p(gather)", {"matmul": "loops 'm:p(gather)' are not 'p'",
                                                   "rows": "n is 7, at most 4 is allowed"})]},
    "two": {"groups": [group("matmul", "m:p { k:s(dot) }", {"matmul": ""}),
                       group("rows", "", {"rows": ""})]}}


def test_groups_of_one_card_and_nest_are_a_row():
    taken = cards.collect(ANSWERS)["matmul"]["m:p { k:s(dot) }"]
    assert (taken.groups, dict(taken.models)) == (3, {"one": 2, "two": 1})


def test_what_no_card_took_has_the_reasons_of_those_that_got_farthest():
    text = "\n".join(cards.lines(cards.collect(ANSWERS), idle={"serial"}))
    assert "| matmul | 3 | 1 | 2 |" in text and "Cards that took nothing: serial." in text
    assert "| `m:p(gather)` | 1 | one 1 | rows: n is 7, at most 4 is allowed |" in text


def test_a_page_shows_the_nests_with_most_groups():
    groups = [group("a", "m:p", {})] * 2 + [group("a", "n:p", {})]
    found = cards.collect({"one": {"groups": groups}})
    assert "and 1 nests more, of 1 groups." in "\n".join(cards.lines(found, 1))
