"""heddle cards: the list, refusals of a model's groups, new cards, and the proofs of our own."""

import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node

from command import ROOT, fails, heddle, json_of, needs_heddle, ok, save

pytestmark = needs_heddle
OURS = [*sorted(ROOT.glob("schedules/*/*.mlir")), *sorted(ROOT.glob("examples/*/*.mlir"))]


def norm_model():
    """Rows over their root mean square, times weights."""
    nodes = [make_node("Mul", "x x", "square", name="square"),
             make_node("ReduceMean", "square", "mean", name="mean", axes=[-1], keepdims=1),
             make_node("Sqrt", "mean", "root", name="root"),
             make_node("Div", "x root", "unit", name="unit"),
             make_node("Mul", "unit w", "y", name="norm")]
    return make_model(nodes, {"x": ["batch", 7, 48]}, {"y": ["batch", 7, 48]},
                      {"w": np.linspace(0.5, 2, 48, dtype=np.float32)})


@pytest.fixture
def norm(tmp_path):
    return save(norm_model(), tmp_path / "norm.onnx")


@pytest.mark.parametrize("card", OURS, ids=lambda path: path.stem)
def test_our_own_cards_are_proved(card):
    (proof,) = json_of("cards", "check", card)["cards"]
    assert proof["passes"] and proof["mutation"] and proof["carried_out"] > 0


def test_a_proof_is_the_same_for_the_same_seed():
    def proof(seed):
        done = json_of("cards", "check", ROOT / "schedules/cpu/reduce_rows.mlir", "--count", "6",
                       "--seed", seed)["cards"][0]
        return {key: done[key] for key in done if key != "seconds"}
    assert proof(3) == proof(3)


def test_list_is_in_the_order_of_priority():
    cards = json_of("cards", "list", "--schedules", ROOT / "examples/cards")["cards"]
    assert cards[0]["name"] == "norm_gate" and not cards[0]["built_in"]
    assert cards[0]["nest"] == ["p* { s(sum) p { s(dot) } p { s(dot) } }"]
    assert cards[0]["mechanism"] == "kernel.nest"
    priorities = [card["priority"] for card in cards]
    assert priorities == sorted(priorities, reverse=True)
    assert {"matmul", "conv", "elementwise"} <= {card["name"] for card in cards}
    text = heddle("cards", "list").output
    assert "matmul" in text and "built-in" in text and "norm_gate" not in text


def test_show_prints_the_file():
    assert heddle("cards", "show", "matmul").output == \
        (ROOT / "schedules/cpu/matmul.mlir").read_text()
    done = fails("cards", "show", "matmull")
    assert done.errors.startswith("there is no card 'matmull'; did you mean 'matmul'?\n")


def test_explain_says_who_is_chosen_and_why_others_are_not(model):
    (group,) = json_of("cards", "explain", model)["groups"]
    assert group["chosen"] == "matmul" and group["knobs"]["n"] > 0
    refusals = {card["card"]: card.get("refusal") for card in group["cards"]}
    assert refusals["matmul"] is None
    assert "are not 'p* { s+(max|min|sum|prod) }'" in refusals["reduce_rows"]
    assert refusals["matmul_gates"] == "no product of the group is read in parts"
    assert "are not 'p* { k:s { w+(dot) } }'" in refusals["conv"]
    text = heddle("cards", "explain", model, "--group", group["name"]).output
    assert "  chosen   matmul: m=" in text and "  refused  reduce_rows: loops" in text


def test_explain_of_a_group_that_there_is_not(norm):
    fails("cards", "explain", norm, "--group", "nrm",
          says="the model has no group 'nrm'; did you mean 'norm'?")


def test_new_writes_a_card_that_is_proved_and_chosen(norm, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    ok("cards", "new", "rms", "--from", norm, "-o", folder / "rms.mlir")
    text = (folder / "rms.mlir").read_text()
    assert all(f"// {field} " in text for field in ("Matches", "Produces", "Needs", "Why"))
    assert "transform.heddle.rows %group rows %rows" in text
    ok("cards", "check", folder / "rms.mlir")
    groups = json_of("cards", "explain", norm, "--schedules", folder)["groups"]
    assert [group["chosen"] for group in groups] == ["rms"]


def test_new_does_not_replace_what_was_edited(norm, tmp_path):
    card = tmp_path / "rms.mlir"
    card.write_text("mine")
    fails("cards", "new", "rms", "--from", norm, "-o", card, says="is there already")
    assert card.read_text() == "mine"
    ok("cards", "new", "rms", "--from", norm, "-o", card, "--force")
    assert "@schedule" in card.read_text()


def test_new_wants_the_name_of_the_file(norm, tmp_path):
    fails("cards", "new", "rms", "--from", norm, "-o", tmp_path / "other.mlir",
          says="a card has the name of its file")


def test_a_card_that_is_wrong_stops_no_other(tmp_path):
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text("nonsense")
    done = fails("cards", "check", wrong, ROOT / "schedules/cpu/serial.mlir", "--json")
    assert [card["passes"] for card in done.json["cards"]] == [False, True]
    assert f"{wrong}:1:1: error: " in done.errors


@pytest.mark.parametrize("arguments, message", [
    ([], "heddle cards: A subcommand is required"),
    (["chek"], "heddle cards: unexpected 'chek'"),
    (["check"], "heddle cards: CARD is required"),
    (["check", "no/such.mlir"],
     "error: cannot read card 'no/such.mlir': No such file or directory"),
])
def test_mistakes(arguments, message):
    fails("cards", *arguments, says=message)
