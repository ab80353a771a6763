"""ir_test: 200 mutants of IR text, each of which heddle-opt takes or refuses with a message."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

import ir

pytestmark = pytest.mark.skipif(ir.OPT is None, reason="there is no heddle-opt; `./dev build` "
                                "makes it")


@pytest.fixture(name="campaign", scope="module")
def make_campaign():
    return ir.Campaign(seed=1)


def test_mutants_are_taken_or_refused(campaign):
    count = 200
    with ThreadPoolExecutor(2) as pool:
        findings = [each for each in pool.map(campaign, range(count)) if each]
    assert not findings, "\n".join(f"{each.number}: {each.why}" for each in findings)
    assert count // 20 < campaign.accepted < count * 19 // 20  # most change something that matters


def test_seeds_are_of_each_kind(campaign):
    for kind, texts in campaign.texts.items():
        assert len(texts) >= 12, kind
        ended = [ir.run(text, ir.COMMANDS[kind][0])[0] for text in texts[:6]]
        assert 0 in ended, (kind, ended)


def test_a_mutant_is_made_again(campaign):
    for kind, texts in campaign.texts.items():
        one, again = (ir.mutant(random.Random(7), texts, campaign.ways[kind]) for _ in range(2))
        assert one == again
        assert one not in texts
