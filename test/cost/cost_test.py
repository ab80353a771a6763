"""Tests of heddle_lab.cost without records: metrics, splits, files, and what models can learn."""

import argparse
import io
import json
from contextlib import redirect_stderr

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx.reference import ReferenceEvaluator

import heddle
from heddle import UsageError
from heddle_lab.cost import Corpus, metrics, ranker
from heddle_lab.cost.corpus import Group
from heddle_lab.cost.evaluate import evaluate, evaluate_file, folds_of, usable
from heddle_lab.cost.network import LISTED, Network, feeds_of
from heddle_lab.cost.train import scale_of, train

NODE_NAMES = ["size", "flag"]
NAMES = ["vector_operations", "vector_loads", "moved_bytes", "tasks", "balance", "register_spill"]


def made_group(seed, candidates=8, models=("m",), nodes=None, sees_graph=True):
    """A chain of ops. Its time grows with the loads, and with the tasks if the first op is of kind
    2; else it falls with them."""
    random = np.random.default_rng(seed)
    count = nodes or int(random.integers(2, 7))
    ops = random.integers(1, 4, count).astype(np.int32)
    values = random.uniform(0, 4, (candidates, len(NAMES))).astype(np.float32)
    values[:, 4] = 1
    sign = 1 if ops[0] == 2 or not sees_graph else -1
    seconds = 1e-4 * np.exp(0.2 * values[:, 1] + 0.3 * sign * values[:, 3])
    return Group(f"group{seed}", "contraction", tuple(models), ops,
                 random.uniform(0, 1, (count, len(NODE_NAMES))).astype(np.float32),
                 np.array([[i, i + 1] for i in range(count - 1)], np.int32).reshape(-1, 2), values,
                 seconds, np.arange(candidates) == 0)


def made_corpus(count=48):
    return Corpus([made_group(seed, models=(f"m{seed % 6}",)) for seed in range(count)],
                  ["other", "a", "b", "c"], NODE_NAMES, NAMES,
                  {"target": "t", "threads": 1, "machine": "here", "left_out": {}})


# Metrics.

def test_tau_is_that_of_the_definition():
    assert metrics.kendall_tau([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert metrics.kendall_tau([3, 2, 1], [10, 20, 30]) == pytest.approx(-1)
    # 5 of 6 pairs agree and 1 does not.
    assert metrics.kendall_tau([1, 2, 4, 3], [1, 2, 3, 4]) == pytest.approx(4 / 6)
    # tau-b: 2 agree, none disagrees, one tie among the scores: 2 / sqrt(2 * 3).
    assert metrics.kendall_tau([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / np.sqrt(6))
    assert metrics.kendall_tau([1, 1, 1], [1, 2, 3]) is None


def test_clear_pairs_are_those_that_differ():
    assert metrics.clear_tau([2, 1, 3], [1.00, 1.01, 2.0]) == 1  # the first pair does not count
    assert metrics.clear_tau([2, 1, 0], [1.00, 1.01, 2.0]) == -1
    assert metrics.clear_tau([1, 2], [1.00, 1.01]) is None


def test_slowdowns_are_of_the_best_pick():
    seconds = [3.0, 1.0, 2.0, 4.0]
    assert metrics.slowdown([0, 2, 1, 3], seconds, 1) == pytest.approx(2)
    assert metrics.slowdown([0, 2, 1, 3], seconds, 2) == pytest.approx(1)
    assert metrics.slowdown([0, 2, 1, 3], seconds, 3) == 0
    assert metrics.slowdown([1, 1, 1, 1], seconds, 1) == pytest.approx(3)  # nothing is guessed


def test_the_default_is_kept_where_little_is_promised():
    group = made_group(0, 3)
    group.seconds = np.array([2.0, 1.0, 4.0])  # the first is the default
    assert metrics.guarded(np.array([0, -1, 1]), group) == 0
    assert metrics.guarded(np.array([0, -0.1, 1]), group) == 1
    assert metrics.guarded(np.array([0, 1, -1]), group) == 3


def test_summaries_weigh_models_by_their_time():
    short, long = made_group(0, 3, ("m",)), made_group(1, 3, ("m",))
    short.seconds, long.seconds = np.array([1.0, 2, 3]), np.array([10.0, 11, 30])
    found = metrics.summary([(short, np.array([2, 1, 3])), (long, np.array([1, 2, 3]))])
    assert found["top1"] == pytest.approx((1.0 + 0.0) / 2)
    assert found["top1_models"] == pytest.approx(12 / 11 - 1)
    assert found["groups"] == 2 and found["candidates"] == 6


# Corpora.

def test_corpora_survive_a_file(tmp_path):
    corpus = made_corpus(7)
    corpus.save(tmp_path / "x.npz")
    read = Corpus.read(tmp_path / "x.npz")
    assert (read.op_names, read.node_names, read.candidate_names, read.about) == (
        corpus.op_names, corpus.node_names, corpus.candidate_names, corpus.about)
    for one, other in zip(corpus.groups, read.groups, strict=True):
        assert (one.key, one.kind, one.models) == (other.key, other.kind, other.models)
        for name in ("ops", "nodes", "edges", "candidates", "seconds", "is_default"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert len(read) == len(corpus) == 56


def test_folds_hold_networks_out_whole():
    corpus = made_corpus()
    corpus.groups[0].models = ("m0", "m1")  # a group that two networks have
    for wanted, count in (("3", 3), ("models", 6)):
        folds = folds_of(corpus.groups, wanted)
        assert len(folds) == count
        for training, held in folds:
            networks = set()
            for group in held:
                networks |= set(group.models)
            assert not {id(group) for group in training} & {id(group) for group in held}
        # Each group is judged, by a model that has seen none of its networks.
        judged = {id(group) for _, held in folds for group in held}
        assert judged == {id(group) for group in corpus.groups}
    assert all(not any("m0" in g.models for g in training)
               for training, held in folds_of(corpus.groups, "models")
               if all("m0" in g.models for g in held))


def test_folds_are_refused_that_teach_nothing():
    corpus = made_corpus()
    for wanted in ("1", "0", "many"):
        with pytest.raises(UsageError, match="--folds is"):
            folds_of(corpus.groups, wanted)
    for group in corpus.groups:
        group.models = ("m",)
    with pytest.raises(UsageError, match="of one network"):
        folds_of(corpus.groups, "models")


def test_short_groups_are_left_out():
    corpus = made_corpus(4)
    corpus.groups[0].seconds = corpus.groups[0].seconds * 1e-6
    assert usable(corpus, 2e-6) == corpus.groups[1:]


# The network.

@pytest.fixture(scope="module")
def network():
    return Network(epochs=40).fit(made_corpus(96).groups, NAMES)


def test_the_network_learns(network):
    """The work of tasks is told by the first op alone, of which no candidate's feature knows."""
    assert network.losses[-1] < network.losses[0]
    held = [made_group(seed) for seed in range(1000, 1040)]
    found = metrics.summary([(group, network.predict(group)) for group in held])
    assert found["tau"] > 0.6 and found["top1"] < 0.15
    # Groups of equal ops tell nothing of it.
    for group in held:
        group.ops[:] = 3
    assert metrics.summary([(g, network.predict(g)) for g in held])["tau"] < found["tau"] - 0.15


def test_order_of_nodes_does_not_matter(network):
    group = made_group(2000, nodes=6)
    order = np.random.default_rng(0).permutation(6)
    place = np.argsort(order)
    other = Group(group.key, group.kind, group.models, group.ops[order], group.nodes[order],
                  place[group.edges].astype(np.int32), group.candidates, group.seconds,
                  group.is_default)
    assert np.allclose(network.predict(group), network.predict(other), atol=1e-4)


def test_padding_does_not_matter(network):
    group = made_group(2001, nodes=5)
    evaluator = ReferenceEvaluator(network.model())
    found = [evaluator.run(None, {**feeds_of([group], nodes),
                                  "candidates": group.candidates[None]})[0][0]
             for nodes in (5, 13)]
    assert np.allclose(found[0], found[1], atol=1e-4)
    assert np.allclose(found[0], network.predict(group), atol=1e-4)  # as Heddle compiles it


def test_what_is_outside_of_the_training_is_counted(network):
    inside, beyond = made_group(3), made_group(3)
    beyond.candidates[0, 1] = 9
    beyond.candidates[1, :3] = -1
    module = heddle.compile(network.model(), cache=False)
    session = heddle.Session(module)
    for group, expected in ((inside, [0] * 8), (beyond, [1, 3] + [0] * 6)):
        feeds = {**feeds_of([group], len(group.ops)), "candidates": group.candidates[None]}
        assert session.run(None, feeds)[1][0].tolist() == expected


# Files of cost models.

@pytest.fixture
def saved(network, tmp_path):
    corpus = made_corpus(96)
    ranker.save(network, corpus.groups, corpus, tmp_path / "cost.onnx")
    return tmp_path / "cost.onnx"


def test_a_file_ranks_as_what_was_trained(network, saved):
    loaded = ranker.Ranker(saved)
    loaded.check(made_corpus())
    group = made_group(5000)
    scores, outside = loaded.scores(group)
    assert np.allclose(scores, network.predict(group), atol=1e-5)
    assert outside.tolist() == [0] * 8
    assert loaded.about["keys"] == sorted(f"group{seed}" for seed in range(96))


def test_a_file_is_judged_on_what_it_has_not_seen(saved):
    corpus = made_corpus(60)
    options = argparse.Namespace(least=0)
    with pytest.raises(UsageError, match="was trained with all groups"):
        evaluate_file(corpus, options, saved)
    corpus.groups += [made_group(seed) for seed in range(3000, 3010)]
    text = evaluate_file(corpus, options, saved)
    assert text.startswith("10 groups of 1 networks, 80 candidates judged")
    assert float(text.splitlines()[2].split()[1]) > 0.5


def test_scores_are_scaled_by_what_they_are_worth():
    groups = [made_group(seed) for seed in range(20)]

    class Exaggerating:
        def __init__(self, factor):
            self.factor = factor

        def predict(self, group):
            return 7 + self.factor * np.log(group.seconds)

    assert scale_of(Exaggerating(4.0), groups) == pytest.approx(0.25)
    assert scale_of(Exaggerating(0.5), groups) == 1  # timid ones are left so
    assert scale_of(Exaggerating(-1.0), groups) == 0  # and wrong ones promise nothing
    assert scale_of(Exaggerating(0.0), groups) == 0


def test_training_scales_what_it_writes():
    corpus, lines = made_corpus(24), []
    trained = train(corpus.groups, corpus, argparse.Namespace(seed=0, epochs=2), lines.append)
    assert 0 <= trained.scale <= 1 and f"with {trained.scale:.2f}, as " in "".join(lines)
    scaled = trained.predict(corpus.groups[0])
    trained.scale, trained._session = 1.0, None
    assert np.allclose(scaled, trained.predict(corpus.groups[0]) * float(
        "".join(lines).split("multiplied with ")[1].split(",")[0]), atol=2e-2)
    alone = [group for group in corpus.groups if group.models == ("m0",)]
    assert train(alone, corpus, argparse.Namespace(seed=0, epochs=1), lines.append).scale == 1
    assert any("of one network" in line for line in lines)


OTHER = make_model([make_node("Identity", "x", "y")], {"x": [1]}, {"y": [1]})


def changed(path, **more):
    """The file with other metadata."""
    model = onnx.load(path)
    about = json.loads(model.metadata_props[0].value)
    model.metadata_props[0].value = json.dumps({**about, **more})
    onnx.save(model, path)


@pytest.mark.parametrize("damage, problem", [
    (lambda path: path.unlink(), "no such file"),
    (lambda path: path.write_bytes(path.read_bytes()[:2000]), "no ONNX model, or a damaged one"),
    (lambda path: path.write_bytes(b"text"), "no ONNX model, or a damaged one"),
    (lambda path: changed(path, features=99), "features of version 99, this heddle has 1"),
    (lambda path: changed(path, features=None), "features of version None"),
    (lambda path: onnx.save(OTHER, path), "but not one of costs")])
def test_files_that_are_none_are_refused(saved, damage, problem):
    damage(saved)
    with pytest.raises(UsageError, match=problem):
        ranker.Ranker(saved)


def test_files_of_other_machines_and_features_are_refused(saved):
    loaded = ranker.Ranker(saved)
    other = made_corpus(2)
    other.about = {**other.about, "target": "elsewhere"}
    with pytest.raises(UsageError, match="trained for target 't', the corpus is of 'elsewhere'"):
        loaded.check(other)
    other = made_corpus(2)
    other.candidate_names = [*NAMES[1:], "another"]
    with pytest.raises(UsageError, match="other features of candidates"):
        loaded.check(other)


def test_features_that_were_added_are_outside_unless_they_are_0(saved):
    loaded, other = ranker.Ranker(saved), made_corpus(2)
    other.candidate_names = [*NAMES, "another"]
    loaded.check(other)
    group = other.groups[0]
    before, outside = loaded.scores(group)
    added = np.arange(len(group.seconds)) % 2
    group.candidates = np.column_stack([group.candidates, added]).astype(np.float32)
    after, more = loaded.scores(group)
    np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(more, outside + added)


def test_equal_seeds_learn_the_same():
    groups = made_corpus(12).groups
    one, other = (Network(seed=3, epochs=2).fit(groups, NAMES) for _ in range(2))
    assert all(np.array_equal(one.weights[name], other.weights[name]) for name in one.weights)


def test_lists_begin_with_the_fastest():
    groups = [made_group(seed, candidates=3 + 3 * seed) for seed in range(8)]
    feeds = Network._lists(groups, np.random.default_rng(0))
    for i, group in enumerate(groups):
        count = min(LISTED, len(group.seconds))
        assert feeds["valid"][i].sum() == count
        assert np.all(np.diff(feeds["target"][i, :count]) >= 0)
        assert abs(feeds["target"][i, :count].mean()) < 1e-5


def test_evaluation_judges_all_on_equal_splits(tmp_path):
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib")
    options = argparse.Namespace(models=["analytic", "network"], folds="3", least=0, epochs=4,
                                 seed=0, output=tmp_path)
    lines = io.StringIO()
    with redirect_stderr(lines):
        text = evaluate(made_corpus(), options, lambda line: print(line, file=lines))
    assert "48 groups of 6 networks in 3 folds, 384 candidates judged" in text
    rows = {line.split()[0]: line.split() for line in text.splitlines()[1:] if line}
    assert {"analytic", "network", "rules", "kind"} <= set(rows)
    assert float(rows["network"][1]) > 0.3
    assert {path.name for path in tmp_path.iterdir()} == {
        "evaluation.json", "scatter.png", "slowdown.png", "network_training.png"}


def test_trees_learn():
    pytest.importorskip("lightgbm")
    from heddle_lab.cost.trees import Trees

    trees = Trees(rounds=100).fit([made_group(seed, sees_graph=False) for seed in range(48)], NAMES)
    held = [made_group(seed, sees_graph=False) for seed in range(1000, 1020)]
    found = metrics.summary([(group, trees.predict(group)) for group in held])
    assert found["tau"] > 0.7
    level = np.array([[np.mean(trees.predict(g)), np.mean(np.log(g.seconds))] for g in held])
    assert np.mean(np.abs(level[:, 0] - level[:, 1])) < 0.5


def test_the_roofline_fits_what_is_one():
    pytest.importorskip("scipy")
    from heddle_lab.cost.analytic import Analytic

    groups = [made_group(seed) for seed in range(20)]
    for group in groups:
        group.candidates[:, :3] += 8
        group.candidates[:, 5] = 0
        count = 2 ** group.candidates.astype(float) - 1
        group.seconds = np.maximum(np.maximum(count[:, 0] / 4e9, count[:, 1] / 2e9),
                                   count[:, 2] / 1e9) + 3e-8 * count[:, 3] + 1e-7
    model = Analytic().fit(groups, NAMES)
    errors = [np.abs(model.predict(group) - np.log(group.seconds)).mean() for group in groups]
    assert np.mean(errors) < 0.1
