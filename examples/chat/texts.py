"""texts: questions about Heddle and their answers, which are all that the model of this example
reads. SPDX-License-Identifier: Apache-2.0
"""

ANSWERS = {
    "What is Heddle?": "Heddle is a compiler. It turns a model into native code.",
    "What is a card?": "A card is a text file that says how a kernel is tiled.",
    "What is a plan?": "A plan says which ops share a kernel, and which card made it.",
    "What is a kernel?": "A kernel is a group of ops that became one loop nest.",
    "What is the oracle?": "The oracle is a slow, obvious interpreter. All that is fast is tested "
                           "against it.",
    "What is an artefact?": "An artefact is a shared library with a C header.",
    "What goes in?": "An ONNX model goes in.",
    "What comes out?": "A shared library comes out. It needs neither Python nor LLVM.",
    "Which sizes may it have?": "Any. Dimensions are symbols: one library serves all sizes.",
    "Which CPUs does it know?": "It knows x86 from SSE to AVX, and ARM from NEON on.",
    "Can it train?": "Yes. It trained the model that tells you this.",
    "Can it quantise?": "Yes. Weights become integers of four or eight bits.",
    "Can I add a schedule?": "Yes. Add a card; nothing is built again.",
    "Who are you?": "I am a small model that has read one page about Heddle.",
    "How were you made?": "A tokenizer counted pairs of letters. Then I read one page many times.",
    "How do you answer?": "One token after the other. Keys and values of the past are kept.",
    "Thank you!": "You are welcome.",
    "Hello!": "Hello! Ask me what a card is, or what a plan is.",
}


def said(text):
    """A message as the model reads it."""
    return f"{text}<end>"


def talk(questions):
    """Messages of these questions and their answers, one after the other."""
    return "".join(f"<user>{said(each)}<assistant>{said(ANSWERS[each])}" for each in questions)
