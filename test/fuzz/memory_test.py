"""Limits of memory on random models: what the judge finds, and a short campaign."""

import heddle
import pytest
from heddle_lab.fuzz import memory
from heddle_lab.fuzz.campaign import Campaign

pytestmark = pytest.mark.usefixtures("compiler")


def judged(index):
    model, cases = memory.generate(1, index, (8, 40))
    return memory.judge(model, cases, 1 + index % 2)


@pytest.mark.parametrize("index", [27, 40])
def test_a_plan_that_computes_results_again_is_carried_out(index):
    """Several copies before one reader; a group that is chosen for a second time."""
    outcome = judged(index)
    assert not outcome.is_finding and outcome.held > 1


@pytest.mark.parametrize("index", [36, 80])
def test_a_plan_says_what_feedback_has_split(index):
    """Else what it split is joined again, and the groups of the plan are not there."""
    model, _ = memory.generate(1, index, (8, 40))
    options = {"cache": False}
    module = heddle.compile(model.SerializeToString(), **options)
    assert module.compiled.plan["split"]
    wrong, _ = memory.replayed(model.SerializeToString(), module, options)
    assert wrong is None or not wrong.startswith("refused")


def test_what_differs_within_a_limit_is_found(monkeypatch):
    """Numbers that are off by 1 stand for a compiler that gets them wrong."""
    limited, compiled, results = [], memory.compiled_within, memory.results

    def within(*arguments):
        module, limit = compiled(*arguments)
        limited.append(module)
        return module, limit

    monkeypatch.setattr(memory, "compiled_within", within)
    monkeypatch.setattr(memory, "results", lambda module, threads, feeds: {
        name: array + 1 if module in limited else array
        for name, array in results(module, threads, feeds).items()})
    assert "with a limit of memory and not without" in judged(27).message


def test_a_short_campaign_finds_nothing():
    campaign = Campaign(3, lambda index: memory.generate(3, index), limit=600, kind="memory")
    campaign.run(range(4))
    assert not campaign.findings and campaign.models == 4
