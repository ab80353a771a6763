"""Choices from logits: by their probabilities, within what settings leave."""

import numpy as np
import pytest
from heddle.generate.sample import Sampler, Settings, _fewest, log_probabilities

from heddle import UsageError

stats = pytest.importorskip("scipy.stats")
DRAWS = 100_000
LOGITS = np.array([2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, 0.25])


def softmax(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def counts(logits, draws=DRAWS, **settings):
    sampler = Sampler(Settings(temperature=settings.pop("temperature", 1.0), seed=11, **settings),
                      len(logits))
    made = np.zeros(len(logits), int)
    kept = sampler._kept(logits)
    for _ in range(draws):
        made[sampler._draw(*kept)] += 1
    return made


def top(shares, kept):
    return np.where(np.isin(np.arange(len(shares)), kept), shares, 0)


ORDER = np.argsort(-LOGITS)
SHARES = softmax(LOGITS)


@pytest.mark.parametrize("settings, shares", [
    ({}, SHARES),
    ({"temperature": 0.5}, softmax(LOGITS / 0.5)),
    ({"temperature": 3.0}, softmax(LOGITS / 3)),
    ({"top_k": 3}, top(SHARES, ORDER[:3])),
    ({"top_k": 100}, SHARES),
    ({"top_p": 0.7}, top(SHARES, ORDER[:3])),  # 0.40, 0.64, 0.79
    ({"top_p": 1e-6}, top(SHARES, ORDER[:1])),
    ({"min_p": 0.3}, top(SHARES, np.flatnonzero(SHARES >= 0.3 * SHARES.max()))),
    ({"temperature": 2.0, "top_k": 5, "top_p": 0.9, "min_p": 0.45},
     top(softmax(LOGITS / 2), ORDER[:4])),
])
def test_draws_have_their_probabilities(settings, shares):
    made, wanted = counts(LOGITS, **settings), shares / shares.sum()
    assert not made[wanted == 0].any()
    kept = wanted > 0
    if kept.sum() > 1:
        assert stats.chisquare(made[kept], wanted[kept] * DRAWS).pvalue > 1e-3
    assert made.sum() == DRAWS


def test_the_chosen_ones_are_what_choose_draws():
    one, other = (Sampler(Settings(temperature=1, seed=5), 8) for _ in range(2))
    assert [one.choose(LOGITS)[0] for _ in range(50)] == [
        other._draw(*other._kept(LOGITS)) for _ in range(50)]


@pytest.mark.parametrize("whole", [0.01, 0.5, 0.9, 0.999, 0.999999])
@pytest.mark.parametrize("spread", [0.1, 4.0])
def test_the_fewest_of_many_are_those_of_a_whole_sort(whole, spread):
    shares = softmax(np.random.default_rng(7).standard_normal(5000) * spread)
    order = np.argsort(-shares)
    count = int((np.cumsum(shares[order]) < whole).sum()) + 1
    np.testing.assert_array_equal(_fewest(shares, whole), order[:count])


def test_seeds():
    def draws(**settings):
        sampler = Sampler(Settings(temperature=1, **settings), 8)
        return [sampler.choose(LOGITS)[0] for _ in range(30)]

    assert draws(seed=1) == draws(seed=1) != draws(seed=2)
    assert draws() != draws()


def test_zero_is_greedy():
    sampler = Sampler(Settings(temperature=0), 8)
    assert {sampler.choose(LOGITS)[0] for _ in range(5)} == {0}
    assert Settings(temperature=None).temperature == 0


def chosen(steps=1, prompt=(), **settings):
    sampler = Sampler(Settings(**settings), 8, prompt)
    return [sampler.choose(LOGITS)[0] for _ in range(steps)]


def test_bias_and_penalties():
    assert chosen(logit_bias={4: 2.5}) == [4] == chosen(logit_bias={"4": 2.5})
    assert chosen(logit_bias={0: -np.inf, 1: -100}) == [2]
    # 2.0 / 1.5 < 1.5; then 1.5 / 1.5 = 1.0: the first of equals.
    assert chosen(3, repetition_penalty=1.5) == [0, 1, 0]
    assert chosen(2, prompt=[0, 1], repetition_penalty=4) == [2, 0]
    assert chosen(4, presence_penalty=0.6) == [0, 1, 0, 0]  # 2.0, 1.5, 1.4, and then no more
    assert chosen(6, frequency_penalty=0.6) == [0, 1, 0, 2, 1, 0]
    with pytest.raises(UsageError, match="step 1: 'logit_bias' leaves no token"):
        chosen(logit_bias=dict.fromkeys(range(8), -np.inf))


def test_negative_logits_are_penalised_downwards():
    sampler = Sampler(Settings(repetition_penalty=2.0), 2, [0])
    assert sampler.choose(np.array([-1.0, -1.5]))[0] == 1


def test_logprobs_are_the_models():
    sampler = Sampler(Settings(logprobs=3, temperature=0, logit_bias={4: 9}), 8)
    token, told = sampler.choose(LOGITS)
    assert token == 4 == told.token
    logs = np.log(SHARES)
    assert told.logprob == pytest.approx(logs[4])
    assert [each for each, _ in told.top] == [0, 1, 2]
    np.testing.assert_allclose([log for _, log in told.top], logs[:3])
    assert log_probabilities(np.array([0.0, -np.inf]), 0, 2).top[1][1] == -np.inf


def test_a_callback_sees_and_changes_logits():
    seen = []

    def change(logits):
        seen.append(logits.copy())
        logits[:] = 0
        logits[6] = 1
        return logits

    assert chosen(2, on_logits=change) == [6, 6]
    np.testing.assert_array_equal(seen, [LOGITS, LOGITS])
    assert chosen(on_logits=lambda logits: None) == [0]
    for bad in (lambda logits: logits[1:], lambda logits: logits * np.nan,
                lambda logits: logits - np.inf):
        with pytest.raises(UsageError, match="step 1: 'on_logits' gave"):
            chosen(on_logits=bad)
