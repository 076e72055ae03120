"""The pieces of a completion, as tables: questions, markings, forms, thoughts, and what stands beside an answer.

In a template `@` is the value that it states, and `¤` another value. Inputs of which the page "Where the answer stands" does
not say what they mean are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from verifiers import Problem
from verifiers.audit.markings import WRAPPERS, Wrapper
from verifiers.countdown import CountdownReference

VERIFIERS = ("math", "numeric", "choice", "countdown")


@dataclass(frozen=True, slots=True)
class Question:
    """A gold answer, and values that are or are not equal to it."""

    verifier: str
    kind: str
    reference: object
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    choices: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """The members, if the answer is a list."""
    several: tuple[str, ...] = ()
    """Values that hold the right one and still are no answer, or more than one."""

    @property
    def problem(self) -> Problem:
        """The question as a verifier receives it."""
        metadata: dict[str, object] = {"choices": list(self.choices)} if self.choices else {}
        return Problem(f"{self.verifier}-{self.kind}", "Solve the problem.", self.reference, metadata)


def _question(kind: str, right: Sequence[str], wrong: Sequence[str], parts: Sequence[str] = ()) -> Question:
    several = (
        tuple(f"{right[0]} {word} {wrong[0]}" for word in ("or", "and")) if kind in ("integer", "root", "name") else ()
    )
    return Question("math", kind, right[0], tuple(right), tuple(wrong), parts=tuple(parts), several=several)


MATH = (
    _question("integer", ["42"], ["43", "-42", "24"]),
    _question("small integer", ["7"], ["8", "-7", "17"]),
    _question("negative", ["-7"], ["7", "-8"]),
    _question("decimal", ["3.75", "15/4", r"\frac{15}{4}"], ["3.57", r"\frac{4}{15}"]),
    _question("fraction", [r"\frac{1}{2}", r"\frac12", "1/2", "0.5", r"\dfrac{1}{2}"], [r"\frac13", "2", "0.25"]),
    _question("ratio", ["3/4", r"\frac{3}{4}", r"\tfrac34", "0.75"], ["4/3", r"\frac{3}{5}"]),
    _question("root", [r"2\sqrt{3}", r"2 \sqrt{3}", r"\sqrt{12}"], [r"3\sqrt{2}", r"2\sqrt{5}"]),
    _question("circle", [r"6\pi", r"6 \pi"], [r"9\pi", "6"]),
    _question("power", ["2^{10}", "1024"], ["2^{11}", "1000"]),
    _question("complex", ["3+4i", "3 + 4i", "4i + 3"], ["3-4i", "4+3i"]),
    _question("polynomial", ["x^2+2x+1", "x^2 + 2x + 1", "(x+1)^2"], ["x^2+1", "(x-1)^2"]),
    _question("interval", ["[0, 5)", "[0,5)"], ["[0, 6)", "(1, 5)"]),
    _question("ray", [r"(-\infty, 3]", r"(-\infty,3]"], [r"(-\infty, 4]", "[3, 4]"]),
    _question("tuple", ["(1, 2)", "(1,2)"], ["(2, 1)", "(1, 3)"]),
    _question("set", [r"\{1, 2, 3\}", r"\{1,2,3\}"], [r"\{1, 2, 4\}", r"\{1, 2\}"]),
    _question("list", ["1, 4", "1,4"], ["1, 5", "2, 4"], ["1", "4"]),
    _question("equation", ["x=5", "x = 5"], ["x=6", "x = -5"]),
    _question("line", ["y = 2x + 3", "y=2x+3"], ["y = 2x - 3", "y=3x+2"]),
    _question("name", ["Evelyn"], ["Thomas", "Henry"]),
    _question("day", ["Tuesday"], ["Friday", "Sunday"]),
    _question("words", ["no solution"], ["infinitely many solutions"]),
    _question("percent", [r"35\%", "35%"], [r"53\%", "36%"]),
    _question("money", [r"\$15"], [r"\$16", r"\$51"]),
    _question("unit", [r"5 \text{ cm}", r"5\text{ cm}", "5 cm"], [r"6 \text{ cm}", "7 cm"]),
)
NUMERIC = (
    Question("numeric", "integer", "42", ("42", "42 apples", "42 km"), ("43", "24"), several=("42 or 43", "42 and 24")),
    Question(
        "numeric", "sum", "95", ("95", "95 points"), ("59", "96 points"), several=("37+58", "37 + 58", "90 or 95")
    ),
    Question("numeric", "millions", "1234567", ("1,234,567", "1234567"), ("1,234,568", "123,456")),
    Question("numeric", "thousands", "12500", ("12,500", "12500", "12,500 people"), ("12,050", "125")),
    Question("numeric", "decimal", "3.75", ("3.75", "3.75 meters", r"3.75\text{ meters}"), ("3.57", "37.5 meters")),
    Question("numeric", "negative", "-18", ("-18", "-18 degrees"), ("18", "-81 degrees")),
    Question("numeric", "zero", "0", ("0",), ("1", "10")),
    Question(
        "numeric", "money", "150", ("$150", "150 dollars", "£150", "€150", r"\$150"), ("$105", "510 dollars", "€151")
    ),
)
SPELLINGS = ("{0}", "({0})", "{0}. {1}", "{0}) {1}", "({0}) {1}", "{1}")
"""A letter, and the text of its choice."""
CHOICES = (
    ("cities", ("Rome", "Berlin", "Paris", "Madrid")),
    ("numbers", ("12", "15", "18", "24")),
    ("words", ("photosynthesis", "cellular respiration", "fermentation", "glycolysis", "osmosis")),
)


def _choice_questions() -> Iterator[Question]:
    for kind, texts in CHOICES:
        spelled = {"ABCDE"[i]: tuple(s.format("ABCDE"[i], text) for s in SPELLINGS) for i, text in enumerate(texts)}
        for letter, right in spelled.items():
            others = [other for other in spelled if other != letter]
            wrong = tuple(value for other in others for value in spelled[other])
            pairs = ((letter, others[0]), (others[-1], letter))
            several = tuple(f"{first}{joint}{second}" for first, second in pairs for joint in (" or ", " and ", ", "))
            yield Question("choice", f"{kind} {letter}", letter, right, wrong, texts, several=several)


def _countdown(numbers: tuple[int, ...], target: int, right: Sequence[str], wrong: Sequence[str]) -> Question:
    """A question whose values may have "= target" behind them, which makes none of them right."""
    right, wrong = ((*values, f"{values[0]} = {target}", f"{values[1]}={target}") for values in (right, wrong))
    reference = CountdownReference(numbers=numbers, target=target)
    return Question("countdown", "-".join(map(str, numbers)), reference, tuple(right), tuple(wrong))


QUESTIONS = {
    "math": MATH,
    "numeric": NUMERIC,
    "choice": tuple(_choice_questions()),
    "countdown": (
        _countdown((3, 4, 5), 60, ["3*4*5", "(3 * 4) * 5", "5 * 4 * 3"], ["3*4+5", "3 * (4 + 5)", "4 * 3 * 6"]),
        _countdown(
            (2, 7, 10, 25), 120, ["25*2+7*10", "(25 * 2) + (7 * 10)"], ["25*2+7+10", "25 * 7 - 2 * 10", "100 + 20"]
        ),
        _countdown((1, 3, 6, 8), 24, ["6*(8-3-1)", "(8 - 3 - 1) * 6"], ["8*3+6-1", "(8 + 3 + 1) * 6", "6 * 4"]),
        _countdown((2, 8, 50), 33, ["50/2+8", "(50 / 2) + 8", "8 + 50 / 2"], ["50/(2+8)", "50 - 8 * 2", "40 - 7"]),
        _countdown((4, 25, 75), 104, ["75+25+4", "4 + 25 + 75"], ["75-25+4", "75 + 25 * 4", "100 + 4"]),
    ),
}


OUTER = tuple(wrapper for wrapper in WRAPPERS if not wrapper.formula and wrapper.before not in "'‘")
"""Those that can stand around a whole sentence."""
LINE_MARKS = ("- ", "* ", "# ", "## ", "### ")
Layers = tuple[Wrapper, ...]


def wrapped(text: str, layers: Layers) -> str:
    """The text with every marking around it, the first one innermost."""
    for layer in layers:
        text = layer(text)
    return text


@dataclass(frozen=True, slots=True)
class Form:
    """A way to state a value, which stands for `@` in its template."""

    family: str
    rank: int
    template: str
    usual: bool = False
    """Whether any grader of chat completions should know it."""
    only: tuple[str, ...] = VERIFIERS
    values: str = ""
    """A regular expression for the values that it can state, if it is not for any."""
    last: bool = False
    """Whether nothing can stand behind it."""
    verbatim: bool = False
    """Whether its value takes no marking."""

    @property
    def formula(self) -> bool:
        """Whether its value stands in a formula already."""
        before = re.sub(
            r"\$\$.*?\$\$|\$.*?\$|\\\(.*?\\\)|\\\[.*?\\\]", "", self.template.partition("@")[0], flags=re.DOTALL
        )
        return bool(re.search(r"\$|\\\(|\\\[", before))

    @property
    def weak(self) -> bool:
        """Whether it is read only where no other phrase is."""
        return self.family == "result"

    def fits(self, verifier: str, value: str) -> bool:
        """Whether this verifier reads this form, and the form can state this value."""
        return verifier in self.only and (not self.values or bool(re.fullmatch(self.values, value)))

    def __call__(self, value: str) -> str:
        """A completion, or the part of one, that states the value."""
        quoted = self.family == "json" and '"@"' in self.template
        return self.template.replace("@", json.dumps(value, ensure_ascii=False)[1:-1] if quoted else value)


# fmt: off
USUAL_BOXES = (r"$\boxed{@}$", r"\boxed{@}", "\\[\n\\boxed{@}\n\\]", r"$$\boxed{@}$$", r"The final answer is $\boxed{@}$.",
               r"The final answer is: $\boxed{@}$", r"**Answer:** $\boxed{@}$", "### Final Answer\n\n$$\n\\boxed{@}\n$$",
               "Thus, the answer is:\n\n\\[\n\\boxed{@}\n\\]", "**Final Answer**\n\\boxed{@}")
BOXES = (r"\(\boxed{@}\)", r"\fbox{@}", r"\framebox{@}", r"So we get $\boxed{@}$ in the end.", r"$\boxed{\boxed{@}}$",
         "### ✅ Final Answer:\n\n$$\n\\boxed{@}\n$$", r"**\boxed{@}**", r"\boxed{\text{Answer: }@}",
         r"Final Answer: The final answer is $\boxed{@}$. I hope it is correct.")
TAGS = ("<answer>\n@\n</answer>", "<final_answer>@</final_answer>", "[answer]@[/answer]", "[final_answer]@[/final_answer]",
        "<answer>The answer is @.</answer>", r"<answer>$\boxed{@}$</answer>", "The answer is <answer>@</answer>.")
OBJECTS = ('{"final_answer": "@"}', '{\n  "answer": "@"\n}', '{"reasoning": "17 + 391 = 408", "answer": "@"}',
           r'{"answer": "\\boxed{@}"}', '{"finalAnswer": "@"}', '{"correct_answer": "@"}')
USUAL_SENTENCES = ("The answer is @.", "The final answer is @.", "So the answer is @.", "Therefore, the answer is @.",
                   "Thus, the final answer is @.", "Hence, the correct answer is @.", "The correct answer is @.",
                   "The answer is: @", "So, the final answer is: @", "Answer: @", "Final Answer: @", "**Answer:** @",
                   "**Answer: @**", "**Final Answer:** @", "**Final Answer**: @")
SENTENCES = ("My answer is @.", "Our final answer is @.", "The answer must be @.", "The answer would be @.",
             "The answer should be @.", "The answer equals @.", "The answer is equal to @.", "The answer becomes @.",
             "The answer comes to @.", "The answer comes out to be @.", "The answer turns out to be @.",
             "The answer works out to be @.", "The answer is therefore @.", "The answer is thus @.", "The answer is simply @.",
             "The answer is just @.", "The answer is exactly @.", "The answer is given by @.", "The answer is indeed @.",
             "Answer = @", "Answer → @", "Answer：@", "Hence the answer is @.", "So, the answer is indeed @.",
             "The answer to the question is @.", "Therefore, the correct answer to this problem is @.",
             "The correct answer is therefore @.", "We conclude that the answer is @.", "This means that the answer is @.",
             "I am confident that the answer is @.", "Putting it all together, the answer is @.",
             "After simplifying, the final answer is @.", "Based on the steps above, the answer is @.",
             "In conclusion, the correct answer is @.", "So we are done, and the answer is @.", "**So the answer is @.**",
             "**Conclusion:** the answer is @.", "✅ **Final Answer:** @", "Final answer: **@**",
             "Final Answer: The final answer is @. I hope it is correct.")
CHOOSING = ("I choose @.", "I pick @.", "I would go with @.", "I'd select @.", "I'm going with @.", "My choice is @.",
            "The correct option is @.", "The correct choice is @.", "The best choice is @.", "The right option is @.")
CONFIRMING = ("@ is correct.", "Option @ is correct.", "So @ is the best one.", "Of these, @ is the right one.")
RESULTS = ("The result is @.", "So the final result is @.", "The result comes out to be @.", "## Final Result\n\n@")
DISPLAYS = ("The final answer is:\n\n\\[\n@\n\\]", "Therefore, the answer is:\n\n$$\n@\n$$", "The answer is:\n\n@",
            "Answer:\n@", "**Answer:**\n\n@", "Answer:\nThe value is:\n\\[ @ \\]", "The correct answer is as follows:\n\n@")
HEADINGS = ("### Final Answer\n\n@", "## Answer\n\n@", "**Final Answer**\n\n@", "### Final Answer:\n\n@")
HEADINGS_TOO = ("# Final answer\n@", "### **Final Answer**\n\n@", "**Answer**\n\n@.", "Final Answer\n\n@",
                "#### Final Answer\n\n@", "## The correct answer\n\n**@**", "### Answer\n\nThe value that we want is @.",
                "**Final Answer:** What we are looking for is @.", "### Final Answer\n\n\\[\n@\n\\]")
NUMBERS = ("She ends up with @.", "17 boxes and 23 bags give @ in total.", "Altogether there are **@** of them.",
           "17 + 23 gives @")

# fmt: on


def _forms(
    family: str,
    rank: int,
    templates: Sequence[str],
    usual: bool = False,
    *,
    only: Sequence[str] = VERIFIERS,
    values: str = "",
    last: bool = False,
    verbatim: bool = False,
) -> Iterator[Form]:
    for template in templates:
        yield Form(family, rank, template, usual, tuple(only), values, last, verbatim)


def _labels() -> Iterator[Form]:
    """Markings around the words, around the words without their colon, and around both the words and the value."""
    for label in ("Answer", "Final Answer", "The final answer"):
        for wrapper in WRAPPERS:
            yield Form("label", 2, wrapper(f"{label}:") + " @")
            yield Form("label", 2, f"{wrapper(label)}: @")
            yield Form("label", 2, wrapper(f"{label}: @"))


FORMS = (
    *_forms("box", 1, USUAL_BOXES, usual=True),
    *_forms("box", 1, BOXES),
    *_forms("box", 1, [r"\boxed @", r"$\boxed @$"], values=r"\d|[A-E]", verbatim=True),
    *_forms("hashes", 1, ["#### @", "Adding both parts gives the total.\n#### @"], usual=True, last=True),
    *_forms("hashes", 1, ["#### The answer is @", r"#### $\boxed{@}$"], last=True),
    *_forms("tag", 1, ["<answer>@</answer>"], usual=True),
    *_forms("tag", 1, TAGS),
    *_forms("tag", 1, ["<answer>@", "<answer>\n@"], last=True),
    *_forms("json", 1, ['{"answer": "@"}'], usual=True),
    *_forms("json", 1, OBJECTS),
    *_forms("json", 1, ['{"choice": "@"}', '{"correct_option": "@"}'], only=("choice",)),
    *_forms("json", 1, ['{"answer": @}'], only=("math", "numeric"), values=r"-?\d+(\.\d+)?", verbatim=True),
    *_forms("sentence", 2, USUAL_SENTENCES, usual=True),
    *_forms("sentence", 2, SENTENCES),
    *_labels(),
    *_forms("choosing", 2, CHOOSING, usual=True, only=("choice",)),
    *_forms("confirming", 2, CONFIRMING, only=("choice",), values=r"[A-E]|\([A-E]\)"),
    *_forms("result", 2, RESULTS),
    *_forms("display", 2, DISPLAYS),
    *_forms("display", 2, ["Answer:\n```\n@\n```", "**Answer:**\n\n```\n@\n```"], verbatim=True),
    *_forms("heading", 2, HEADINGS, usual=True),
    *_forms("heading", 2, HEADINGS_TOO),
    *_forms("bare", 4, ["@"], usual=True, last=True),
    *_forms("bare", 4, ["@.", "@\n"], last=True),
    *_forms("number", 5, NUMBERS, only=("numeric",), last=True),
)
# fmt: off
TAILS = ("", "", "", ", because the two parts add up.", ", because 17 + 391 = 408.", ", since every case is covered.",
         ", as required.", ", which completes the solution.", ", so we are done.", ", where all parts are counted once.",
         ", not ¤.")
"""What may stand behind the value of a sentence; `¤` is another value."""

BEFORE = (
    "To solve this problem, we look at each part of it in turn.",
    "Let me work through this step by step.\n\n**Step 1:** Write down what is given.\n\n**Step 2:** Add: 17 + 391 = 408.",
    "### Step 1: Set up\n\nWe start from $17 + 391$.\n\n### Step 2: Simplify\n\nThis gives $408$.",
    "1. Read the question.\n2. Note that **17** of the parts are known.\n3. Combine them.",
    "| part | value |\n|---|---|\n| first | 17 |\n| second | 391 |",
    "```python\ntotal = 17 * 23\nprint(total)\n```",
    '```python\nprint("The answer is ¤")\n```',
    "As a draft:\n\n```\n\\boxed{¤}\n<answer>¤</answer>\n```",
    "\\[\n17 \\times 23 = 391\n\\]",
    "In the first case there are **17** ways, in the second `23`.",
)
"""Working without a mark that counts; `¤` is another value."""
AFTER = (
    "\n\nLet me know if you have any questions!",
    "\n\nI hope this helps! 😊",
    " 🎉",
    "\n\n✅",
    "\n\nFeel free to ask if anything is unclear.",
    "\n\n**Explanation:** the first part gives 17, and the second part gives 391.",
    "\n\n---\n\n*Note:* every case was counted once.",
    "\n\nThis follows from the formula $17 \\times 23 = 391$.",
    "\n\nWould you like to see another example?",
    "\n\n```python\nprint(17 * 23)  # 391\n```",
    "\n\nIn short:\n\n- The first part gives 17.\n- The second part gives 391.",
)
BRIDGES = (
    "That settles the first part of the problem, and one more part remains.",
    "Next, we look at the remaining cases.",
    "Now we put both parts together and simplify.",
    "This is what the first two lines show: $17 \\times 23 = 391$.",
)
TAKEN_BACK = ("Wait, that is wrong.", "Wait, I made a mistake.", "Hmm, that is not right.", "Oops, I made an error.",
              "Scratch that.", "But that can't be right.", "Sorry, that is incorrect.", "Hold on, this seems wrong.",
              "On second thought, that isn't right.", "No, that is not correct.")
CORRECTED = ("Wait, I made a mistake in the last step.", "Correction:", "Hold on, one case is missing.", "Scratch that.",
             "Oops, the second part was counted twice.", "On second thought, one case is missing.", "Let me recompute this.",
             "Hmm, that is not right. Let me redo the last step.", "Wait, that is wrong.", "But that can't be right.")
CORRECTIONS_IN_LINE = tuple(_forms("correction", 2, ("Actually, the answer is @.", "No, wait: the answer is @.",
                                                     "Correction: the answer is @.", "Oops, the answer is @.")))
CONFIRMED = ("Wait, let me check: 17 + 391 = 408. Yes.", "Hmm, let me double-check. Yes, that is correct.",
             "Let me check this once more. It is correct.", "Hold on, is every case covered? Yes, confirmed.",
             "Let me recheck the sum. Everything checks out.")
NONES = ("The answer is not @.", r"The answer is not $\boxed{@}$.", "The answer cannot be @.", "I doubt that the answer is @.",
         "I do not think that the answer is @.", r"I do not believe that the answer is $\boxed{@}$.", "Is the answer @?",
         "If the answer is @, the parts do not add up.", "Assuming the answer is @, the parts do not add up.",
         r"$\boxed{@}$ is wrong.")
"""Marks that are denied, asked or supposed, wherever they stand."""
NONES_BEFORE = ("Suppose the answer is @.", "Perhaps the answer is @.", r"Maybe the answer is $\boxed{@}$.",
                "Let's say the answer is @.", "Possibly the answer is @.")
NEGATED = NONES[:3]
ALTERNATIVES = ("Or maybe @.", "Or @.", "Maybe @.", "Perhaps @.", "Possibly @.", "Alternatively, @.", "It could also be @.",
                "It might be @.")
LISTS = (r"$\boxed{@}$ and $\boxed{¤}$", r"$\boxed{@}$, $\boxed{¤}$", r"\boxed{@} or \boxed{¤}",
         "- $\\boxed{@}$\n- $\\boxed{¤}$",
         "<answer>@</answer> and <answer>¤</answer>")
ITEMS = ("Step 1: The answer is @. Step 2: The answer is ¤.", "1. The answer is @.\n2. The answer is ¤.",
         "- The answer is @.\n- The answer is ¤.", "Step 1: The answer is @.\nStep 2: The answer is ¤.")
CUT_OFF = (r"So we get $\boxed{", r"\boxed{", r"$\boxed{}$", r"So we get \boxed{@", "<answer></answer>", "<answer>")
REFUSALS = ("I don't know.", "I'm not sure.", "I cannot determine the answer.", "I give up.", "Sorry, I can't help with that.",
            "I have no idea.", "I do not know the answer.", "idk", "I am unable to solve this problem.", "No answer.",
            "Unknown", "<answer>I don't know</answer>", r"\boxed{\text{unknown}}", "**Answer:** I don't know.",
            "The answer is unknown.", "I refuse to answer this question.")
FRAGMENTS = ("", "\n", "The answer is", "The final answer is:", "**Answer:**", "### Final Answer\n", r"\boxed{", "$\\boxed{}$",
             "The final answer is $\\boxed{", "<answer>", "<answer></answer>", "####", '{"answer": ""}')

NAMES = ("think", "thinking", "thought", "thoughts", "reasoning", "analysis", "scratchpad")
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"
THOUGHTS = (
    *((f"<{name}>", f"</{name}>") for name in NAMES),
    *((f"[{name}]", f"[/{name}]") for name in NAMES),
    *((f"<{name}>", f"</{name}>") for name in ("THINK", "Thinking", "Reasoning")),
    ("[THINK]", "[/THINK]"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("◁think▷", "◁/think▷"),
    ("<seed:think>", "</seed:think>"),
    ("<|channel>thought", "<channel|>"),
    ("<|channel|>analysis<|message|>", FINAL),
)
THOUGHT_TEXTS = (
    "",
    "The user asks for one value, so the steps should be short.",
    "Let me see. The answer is ¤.",
    "That gives $\\boxed{¤}$. Wait, is it? Let me check. Yes, the answer is ¤.",
    "So the output will be <answer>¤</answer> in the end.",
    "Maybe ¤? Hmm, let me try again.\n\n```python\nprint('The answer is ¤')\n```\n\nOkay.",
    "I'll write `</think>` when I am done. **Final Answer:** ¤",
)
ENDS = ("<|im_end|>", "<｜end▁of▁sentence｜>", "</s>", "<eos>", "<end_of_turn>", "<turn|>", "<|eot_id|>", "<|endoftext|>",
        "</s></s>", "<|im_end|>\n<|endoftext|>", "\n<|im_end|>\n", " </s>")
FENCES = (("```\n", "\n```"), ("```text\n", "\n```"), ("~~~\n", "\n~~~"), ("```markdown\n", "\n```\n"))
# fmt: on
