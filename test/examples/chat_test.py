"""examples/chat: it learns a page, and answers with the page's words."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from heddle.generate import Generator

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "chat"

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers", "jinja2"):
    pytest.importorskip(package)


def test_it_answers_with_what_it_has_read(tmp_path):
    folder = tmp_path / "model"
    done = subprocess.run([sys.executable, EXAMPLE / "chat.py", "--output", folder],
                          capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "> What is a card?\nA card is a text file that says how a kernel is tiled." in (
        done.stdout)
    listed = subprocess.run([sys.executable, "-c", "import json, texts; print(json.dumps("
                             "texts.ANSWERS))"], cwd=EXAMPLE, capture_output=True, text=True,
                            check=True)
    answers = json.loads(listed.stdout)
    generator = Generator(folder, threads=1)
    messages, right = [], 0
    for i, (question, answer) in enumerate(answers.items()):
        messages = messages[-4:] if i % 3 else []
        messages.append({"role": "user", "content": question})
        made = generator.chat(messages, max_tokens=40)
        messages.append({"role": "assistant", "content": made.text})
        right += made.text == answer and made.reason == "stop"
    assert right >= 16
    # Drawn from many likely tokens, words are still the page's.
    known = set(re.findall(r"\w+", " ".join(answers.values())))
    told = re.findall(r"\w+", generator.chat("Hello!", temperature=0.7, seed=1, max_tokens=60).text)
    assert sum(word in known for word in told) >= 0.8 * len(told) > 2
