"""chat: a language model learns a page about Heddle, in half a minute, and answers questions.

    python chat.py [--steps 400] [--output model] [--ask "What is a card?"]

Leaves a folder as others are: config.json, tokenizer.json and model.safetensors.
SPDX-License-Identifier: Apache-2.0
"""

import argparse
import json
import time
from pathlib import Path

import network
import numpy as np
from heddle.generate import Generator
from heddle.training import Trainer, cosine
from safetensors.numpy import save_file
from texts import ANSWERS, talk
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

LENGTH, BATCH, IGNORED = 128, 8, -100
SPECIAL = ["<pad>", "<user>", "<assistant>", "<end>"]
TEMPLATE = ("{% for message in messages %}<{{ message.role }}>{{ message.content }}<end>"
            "{% endfor %}<assistant>")


def read_words():
    """A tokenizer whose tokens are the commonest parts of the page's words."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator([talk(ANSWERS)], trainers.BpeTrainer(
        vocab_size=512, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return made


def batches(words, steps):
    """Talks of random questions: tokens, and the token that follows each."""
    random = np.random.default_rng(0)
    questions = list(ANSWERS)
    for _ in range(steps):
        tokens = np.full((BATCH, LENGTH + 1), words.token_to_id("<pad>"))
        for row in tokens:
            ids = words.encode(talk(random.permutation(questions)[:6])).ids[:LENGTH + 1]
            row[:len(ids)] = ids
        labels = np.where(tokens[:, 1:] == 0, IGNORED, tokens[:, 1:])
        yield {"tokens": tokens[:, :-1], "labels": labels.reshape(-1)}


def write(folder, words, weights):
    """The folder that heddle.generate reads."""
    folder.mkdir(parents=True, exist_ok=True)
    words.save(str(folder / "tokenizer.json"))
    end = words.token_to_id("<end>")
    made = network.config(words.get_vocab_size(), LENGTH, end)
    (folder / "config.json").write_text(json.dumps(made, indent=1))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"chat_template": TEMPLATE, "eos_token": "<end>"}, indent=1))
    save_file({name: np.ascontiguousarray(array) for name, array in weights.items()},
              folder / "model.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--output", type=Path, default=Path("model"))
    parser.add_argument("--ask", action="append", help="a question; may be given again")
    options = parser.parse_args()

    begin = time.perf_counter()
    words = read_words()
    trainer = Trainer(network.Gpt2(words.get_vocab_size(), LENGTH).build(), "cross_entropy",
                      optimizer="adamw", learning_rate=cosine(3e-3, options.steps, warmup=20),
                      clip_norm=1.0, recipe={"ignore_index": IGNORED})
    losses = [trainer.step(each) for each in batches(words, options.steps)]
    write(options.output, words, {name: array for name, array in trainer.weights.items()
                                  if name.startswith("transformer.")})
    print(f"{options.steps} steps in {time.perf_counter() - begin:.1f} s, with compiling; loss "
          f"{losses[0]:.2f} -> {np.mean(losses[-10:]):.3f}; '{options.output}' has the model")
    generator = Generator(options.output)
    for question in options.ask or ["What is a card?"]:
        print(f"> {question}\n{generator.chat(question)}")


if __name__ == "__main__":
    main()
