"""`heddle generate`: goes on with a text, answers a message, or chats in a terminal.

Exit codes are Heddle's: 0 done, 2 usage, 3 refused, 4 limit, 5 internal error.
SPDX-License-Identifier: Apache-2.0
"""

import argparse
import dataclasses
import functools
import json
import sys
from pathlib import Path

from ..library import UsageError
from ..stops import exit_code
from .encoder import TASKS
from .generator import Generator
from .model import add_options

NUMBERS = (("temperature", float, "0: always the likeliest token (default)"),
           ("top_k", int, "choose among the K likeliest tokens"),
           ("top_p", float, "choose among the fewest tokens that together have this probability"),
           ("min_p", float, "choose among tokens of at least this share of the likeliest one's"),
           ("repetition_penalty", float, "divides the logits of tokens that were there"),
           ("presence_penalty", float, "is taken from the logits of tokens that were generated"),
           ("frequency_penalty", float, "the same, once for each time that they were"),
           ("seed", int, "of the random numbers (default: another one each time)"),
           ("prompt_lookup", int, "guess N tokens from the text, and check them in one run"))


def parser_of(program):
    parser = argparse.ArgumentParser(
        prog=program, description="generate text with a language model; docs/guide/generate.md "
        "says more. Without a prompt, a terminal becomes a chat, and other input is the prompt")
    parser.add_argument("model", metavar="MODEL", help="a folder of config.json, tokenizer.json "
                        "and model.onnx or *.safetensors; or a .onnx or .gguf file")
    parser.add_argument("-p", "--prompt", help="the text to go on with")
    parser.add_argument("--audio", metavar="FILE", help="a WAV file in place of the prompt, for a "
                        "model that hears")
    parser.add_argument("--language", metavar="CODE", help="of the sound, as en (default: the "
                        "model finds it)")
    parser.add_argument("--task", choices=TASKS, help="with the sound (default: transcribe)")
    parser.add_argument("--chat", action="store_true",
                        help="the prompt is a message, by the model's chat template")
    parser.add_argument("--system", metavar="TEXT", help="a message of the system before it")
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N",
                        help="tokens of the answer, at most (default: 128)")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT",
                        help="ends the text where this would be in it; \\n is a new line; may be "
                        "given again")
    for name, kind, text in NUMBERS:
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text,
                            metavar="N" if kind is int else "X")
    parser.add_argument("--grammar", metavar="FILE", help="what the text must be: a schema of JSON "
                        "(.json), or a grammar of Lark (.lark)")
    parser.add_argument("--draft", metavar="MODEL", help="a smaller model of the same tokens: it "
                        "guesses what one run of the other then checks")
    parser.add_argument("--draft-tokens", type=int, default=4, metavar="N", help="tokens it "
                        "guesses at a time (default: 4)")
    add_options(parser)
    parser.add_argument("--stats", action="store_true", help="say how long it took, on standard "
                        "error")
    parser.add_argument("--json", action="store_true", help="print the text, its tokens and how "
                        "long it took as JSON")
    return parser


def told(stats):
    """Stats in words."""
    after = max(stats["tokens"] - 1, 0) or 1
    text = (f"prompt: {stats['prompt_tokens']} tokens ({stats['reused_tokens']} of them known), "
            f"{stats['prompt_seconds']:.2f} s; text: {stats['tokens']} tokens, "
            f"{stats['seconds']:.2f} s, {1000 * stats['seconds'] / after:.1f} ms a token")
    if stats["guessed_tokens"]:
        text += f"; guesses: {stats['accepted_tokens']} of {stats['guessed_tokens']} right"
    return text


def read_grammar(path):
    """The setting `grammar` that a file has."""
    kind = {".json": "json_schema", ".lark": "lark"}.get(path.suffix)
    if kind is None:
        raise UsageError(f"'{path}': must end in .json, a schema, or in .lark")
    try:
        return {kind: path.read_text(encoding="utf-8")}
    except (OSError, ValueError) as error:
        raise UsageError(f"'{path}': cannot be read: {error}") from error


class Command:
    """One call of the command."""

    def __init__(self, options, tell, stops):
        self.options, self.tell, self.stops = options, tell, stops
        self.settings = {name: getattr(options, name) for name, *_ in NUMBERS
                         if getattr(options, name) is not None}
        self.settings |= {
            "language": options.language, "task": options.task, "max_tokens": options.max_tokens,
            "stop": [text.replace("\\n", "\n").replace("\\t", "\t") for text in options.stop]}
        if options.grammar is not None:
            self.settings["grammar"] = read_grammar(Path(options.grammar))
        self.first = ([{"role": "system", "content": options.system}] if options.system else [])
        self.generator = Generator(options.model, max_length=options.max_length,
                                   draft=options.draft, draft_tokens=options.draft_tokens,
                                   threads=options.threads,
                                   kv_cache_type=options.kv_cache_type)

    def show(self, stream):
        """Prints a stream as it comes."""
        for piece in stream:
            self.stops.check()
            print(piece, end="", flush=True)
        print(flush=True)
        if self.options.stats:
            self.tell(told(stream.result.stats))
        return stream.result

    def answer(self, prompt):
        """One text."""
        options = self.options
        if options.chat or options.system:
            stream = self.generator.chat([*self.first, {"role": "user", "content": prompt}],
                                         stream=True, **self.settings)
        else:
            stream = self.generator.stream(prompt, **self.settings)
        if not options.json:
            self.show(stream)
            return
        for _ in stream:
            self.stops.check()
        print(json.dumps(dataclasses.asdict(stream.result)), flush=True)

    def chat(self):
        """Messages and answers, until the input ends."""
        messages = list(self.first)
        while True:
            try:
                text = input("> ")
            except EOFError:
                print()
                return
            if not text.strip():
                continue
            messages.append({"role": "user", "content": text})
            result = self.show(self.generator.chat(messages, stream=True, **self.settings))
            messages.append({"role": "assistant", "content": result.text})


def _run(options, tell, stops):
    if options.audio is not None and (options.prompt or options.chat or options.system):
        raise UsageError("--audio is in place of a prompt; leave out -p, --chat and --system")
    options.prompt = options.prompt if options.audio is None else Path(options.audio)
    is_chat = options.prompt is None and sys.stdin.isatty() and not options.json
    command = Command(options, tell, stops)
    if is_chat:
        command.chat()
    else:
        command.answer(sys.stdin.read() if options.prompt is None else options.prompt)


def main(arguments=None, program="heddle generate"):
    options = parser_of(program).parse_args(sys.argv[1:] if arguments is None else arguments)
    return exit_code(program, functools.partial(_run, options),
                     lambda error, tell: print(file=sys.stderr))


if __name__ == "__main__":
    sys.exit(main())
