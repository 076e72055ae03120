"""Tables of the words that mark an answer. Patterns are compiled from the tables, and the documentation prints them.

In a phrase, a space matches any white space, an apostrophe matches a straight or a curly one, `(a|b)` is a choice, and `?`
makes the character or the group before it optional.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase

from verifiers.completion.places import places

_WORD_START = r"(?:(?<![^\W_])|(?=n['’]t))"


@dataclass(frozen=True, slots=True)
class Cues:
    """Phrases of one meaning."""

    means: str
    """The meaning of the phrases for an answer."""
    listed: str
    """The phrases, with semicolons between them."""
    example: str
    """A completion that shows the effect of the phrases."""

    @property
    def phrases(self) -> tuple[str, ...]:
        """The phrases."""
        return tuple(phrase.strip() for phrase in self.listed.split(";"))

    @property
    def pattern(self) -> str:
        """A regular expression without groups that matches any of the phrases; it begins with a test of the first character."""
        signs = "".join(sorted(set().union(*map(_first_signs, self.phrases))))
        look = "" if "\\" in signs else f"(?=[{re.escape(signs)}])"
        look = _WORD_START + look if signs.isalnum() else look
        return f"(?:{look}(?:{'|'.join(map(_compiled, sorted(self.phrases, key=len, reverse=True)))}))"


class Prefilter:
    """Tells by single words whether a text can contain a phrase of some tables, much faster than matching the patterns."""

    def __init__(self, *tables: Cues) -> None:
        self._phrases = [_needed(phrase) for table in tables for phrase in table.phrases]
        self._rarest = frozenset[str]().union(*(needed[0] for needed in self._phrases))

    def may_match(self, text: str) -> bool:
        """Whether the text has the words that a phrase needs."""
        words = _words(text)
        if self._rarest.isdisjoint(words):
            return False
        return any(all(map(frozenset(words).intersection, needed)) for needed in self._phrases)


_PART = re.compile(r"\((?P<choice>[^()]*)\)(?P<may_lack>\?|\{[^}]*\}|(?=\())?|(?P<word>[^\s()]+)")
_LETTERS = defaultdict(lambda: " ", {ord(letter): letter for letter in ascii_lowercase})


def _words(text: str) -> list[str]:
    """The words of a text in lower case, split at apostrophes; `n't` at the end of a word becomes the word `nt`."""
    return text.lower().replace("’", "'").replace("n't", " nt").translate(_LETTERS).split()


def _needed(phrase: str) -> list[frozenset[str]]:
    """Sets of words. A text with the phrase contains a word of every set; the set with the longest words comes first."""
    parts = [part for part in _PART.finditer(phrase) if part["may_lack"] is None]
    choices = [(part["choice"] or part["word"]).split("|") for part in parts]
    choices.sort(key=lambda choice: -min(map(len, choice)))
    return [frozenset(form for one in choice for form in _forms(one)) for choice in choices]


def _forms(phrase: str) -> set[str]:
    """Spellings of a phrase's longest word: with and without its optional last letter, and without its apostrophe."""
    texts = (phrase, phrase.replace("'", ""), phrase[:-2] if phrase.endswith("?") else phrase)
    return {max(_words(text), key=len) for text in texts}


def _last_words(*tables: Cues) -> list[str]:
    """Words such that every phrase of the tables contains one of them; optional endings are left out."""
    return sorted({anchor for table in tables for phrase in table.phrases for anchor in _anchors(phrase)})


class CueFinder:
    """Finds cues from the end of a text.

    Matching a pattern of many alternatives at every position would take most of the time. So the last words of the phrases are
    searched for first, and the pattern is matched only around them.

    Args:
        pattern: Matches the cues, without regard to case.
        tables: The tables from which the pattern is made.
    """

    def __init__(self, pattern: str, *tables: Cues) -> None:
        self.pattern = re.compile(pattern, re.IGNORECASE)
        self._anchors = _last_words(*tables)

    def may_find(self, text: str) -> bool:
        """Whether a text contains the last word of a phrase."""
        small = text.lower()
        return any(anchor in small for anchor in self._anchors)

    def backwards(self, text: str, start: int = 0) -> Iterator[re.Match[str]]:
        """The cues that begin at or after `start`, the last first; they may overlap."""
        small = text.lower()
        if len(small) != len(text):  # a letter whose lower case is two characters
            yield from reversed(list(self.pattern.finditer(text, start)))
            return
        ends = {place + len(anchor) - 1 for anchor in self._anchors for place in places((anchor,), small, start)}
        for place in sorted(ends, reverse=True)[:_MOST_PLACES]:
            for cue in self.pattern.finditer(text, max(start, place - _LONGEST_CUE), place + _LONGEST_CUE):
                if cue.start() <= place < cue.end():
                    yield cue
                    break


_LONGEST_CUE = 40
_MOST_PLACES = 512


def _anchors(phrase: str) -> list[str]:
    """The last words of a phrase that ends in a choice, else its longest word; an optional ending is left out."""
    if phrase.endswith(")"):
        return [word.removesuffix("s?") for word in phrase.rpartition("(")[2].rstrip(")").split("|")]
    return [max(re.sub(r"\([^()]*\)\??", "", phrase).split(), key=len).removesuffix("s?")]


_CLITIC = re.compile(r" (\([^()]*\|'s\b)")


def _first_signs(phrase: str) -> set[str]:
    """The characters with which a phrase can begin."""
    choice, _, rest = phrase[1:].partition(")") if phrase[0] == "(" else (phrase, "", "")
    signs = {text[0] for text in choice.split("|")}
    return signs | _first_signs(rest[1:]) if rest.startswith("?") else signs


def _compiled(phrase: str) -> str:
    spaced = _CLITIC.sub(r" ?\1", phrase)  # no space is needed between "that" and "'s"
    pattern = (
        spaced.replace(".", r"\.").replace("(", "(?:").replace(" ?", r"\s*").replace(" ", r"\s+").replace("'", "['’]?")
    )
    start = _WORD_START if phrase.lstrip("(")[0].isalnum() else ""
    return start + pattern + (r"(?![^\W_])" if phrase[-1].isalpha() or phrase[-1] in ")?" else "")


THOUGHTS = ("think", "thinking", "thought", "thoughts", "reasoning", "analysis", "scratchpad")
"""Names of tags, in angle or square brackets, between which a model thinks."""
OPENINGS = ("<|begin_of_thought|>", "<|START_THINKING|>", "◁think▷", "<seed:think>", "<|channel>thought")
"""Other marks that open a thought; the channels of gpt-oss have a pattern of their own."""
CLOSINGS = ("<|end_of_thought|>", "<|END_THINKING|>", "◁/think▷", "</seed:think>", "<channel|>")
"""The marks that close the thoughts that `OPENINGS` open."""
TAGS = ("answer", "final_answer")
"""Names of tags, in angle or square brackets, between which the answer stands."""
KEYS = ("answer", "final_answer", "final answer", "finalAnswer", "correct_answer", "choice", "correct_option")
"""Keys of a JSON object that hold the answer."""

ANSWERS = Cues(
    "The answer follows a verb after one of these words.",
    "answers?; (correct|right|best) (choice|option); (my|best|final) guess",
    "The answer is 42.",
)
RESULTS = Cues(
    "The same, if the text has no phrase with a word of the table above.",
    "results?",
    "The result is 42.",
)
VERBS = Cues(
    "The verb or sign between such a word and the answer.",
    "is; are; (would|must|should|will|has to|have to) be; equals; becomes; (comes|works|turns) out (to be|to|as); "
    "comes to; is equal to; :; =; ：; →",
    "The answer must be 42.",
)
FILLERS = Cues(
    "Words after the verb that are not part of the answer.",
    "therefore; thus; then; just; hence; given by; equal to; simply; exactly; precisely; definitely; certainly; "
    "clearly; obviously; actually; indeed; still; likely; probably; as follows",
    "The answer is therefore 42.",
)
HEADINGS = Cues(
    "A heading, or a line of its own: the text below it states the answer.",
    "(the |my )?(final |correct )?answers?; final result",
    "### Final Answer\n\n42",
)
CHOOSING = Cues(
    "Only for a choice: the answer follows.",
    "choose; chose; pick; select; go with; going with; choice is; option is",
    "I choose C.",
)
CONFIRMING = Cues(
    "Only for a choice: the answer is in the same sentence.",
    r"(is|are|was|must be|seems|looks) (\w+ )?(the )?(correct|right|best); (correct|right|best) "
    "(answer|option|choice|one|response); the answer",
    "C is correct.",
)
NAMING = Cues(
    "Only for a text and for an expression of countdown: the answer follows.",
    "(list|word|string|text|sequence|order|expression|solution) is; reverse of (\\w+) is",
    "The reversed word is abc.",
)
MOVES = Cues(
    "Only for a move in a game: the move follows.",
    "guess is; guess; move is; (i|i'll|will|me|let's) (play|take|try|choose|pick|say)",
    "I'll guess 42, the middle of 1 and 83.",
)
DENIALS = Cues(
    "In the clause before a mark: the mark does not count.",
    r"(not|n't|cannot|never|nobody|unable to|refuse to|decline to) (\w+ ){0,5}"
    "(say|claim|think|believe|confirm|agree|know|conclude|guarantee|determine|sure|certain|clear|tell|decide|answer|true that"
    "|the case that); doubt; doubt (that|if|whether); whether; mistake to; (wrong|false|incorrect) (that|to)",
    "I can't say that the answer is 42.",
)
ATTRIBUTIONS = Cues(
    "Directly before a mark: somebody else gives that answer.",
    "(insists|claims|says|said|thinks|believes|argues); "
    "(they|some|many|most|others|people|students|friends|classmates) (also |often |still |wrongly |incorrectly |mistakenly )?"
    "(insist|claim|say|think|believe|argue|guess|expect|choose|pick); "
    "(one|you|some|people|students) (may|might|could|would) (think|guess|expect|believe|say|argue)",
    "My friend thinks the answer is 42.",
)
WRONG = Cues(
    "Directly before a word for the answer: the mark does not count.",
    "wrong; incorrect; false; mistaken; student's; classmate's; friend's; other person's",
    "The wrong answer is 42.",
)
SECOND = Cues(
    "Directly before a word for the answer: the phrase gives a second answer beside another.",
    "also; alternative; another; another possible; other; other possible; second",
    "The answer is 42. Another possible answer is 43.",
)
NEGATIONS = Cues(
    "Directly before the value: the mark does not count.",
    "not; n't; never; (cannot|can't) be; anything but; none of; neither; rather than; instead of",
    "The answer is not 42.",
)
REJECTIONS = Cues(
    "Directly after the value: the mark does not count.",
    r"(is|are|was|were|seems|looks) (\w+ )?(wrong|incorrect|false|impossible|out|extraneous|invalid|rejected); "
    "(is|are|was|can|could)( not|n't); "
    "cannot be",
    "The answer 42 is wrong.",
)
SUPPOSITIONS = Cues(
    "At the start of the clause of a mark: the mark does not count.",
    "if; suppose; supposing; assume; assuming; imagine; let's say; unless; maybe; perhaps; possibly; had; i thought; "
    "i initially thought; i first thought; i originally thought; initially i thought; at first i thought; we thought",
    "If the answer is 42, then x is even.",
)
HESITATIONS = Cues(
    "At the start of a sentence or clause: a value that follows alone is the answer. A word of trouble in the sentence, or a "
    "final calculation with another result, takes the earlier answer back. Anything else changes nothing.",
    "wait; no wait; hmm; sorry; actually; hold on; on second thoughts?; on reflection",
    "The answer is 12. Wait, 42.",
)
RETRACTIONS = Cues(
    "At the start of a sentence: the answer before it is taken back.",
    "correction; corrected; (my )?apologies for (the|my|any) (confusion|mistake|error|oversight); my (mistake|bad); edit:; "
    r"upon (re-?(examin|check|think|consider|read|evaluat|count|calculat|vis|view)\w*|closer|further|reflection); "
    "oops; nope; scratch that; strike that; never mind; make that; or rather; i meant?; just kidding; "
    "no, (i|that|this|it|wait|sorry|the answer|actually); "
    r"(please )?(ignore|disregard) (the|that|this|my|what); i (now |have to |must )?(retract|take (that|this|it) back); "
    r"(let me|let us|let's) (correct|fix|try again|start over|redo|re-?do|rework|retry|revise|"
    r"re-?(calculat|comput|consider|evaluat|examin|check|think|count|read|analy[sz])\w*); "
    r"(i|we) (just )?(see|realized?|noticed?|think|believe) (that )?(i|we) ((have )?(made|forgot|missed|misread|overlooked|"
    r"miscalculated)|was wrong); (i|we) (just )?((have )?(made|found|see) (a|an|my|the) (\w+ )?(mistake|error)|forgot|missed|"
    "misread|overlooked|miscalculated); there (is|was|must be|seems to be) (a|an|some) (mistake|error); "
    r"(that|this|it)( answer| result| value)? (is|was|'s|seems|looks|must be) (wrong|incorrect|mistaken|not right|"
    "not correct); (that|this|it)( answer| result| value)? (isn't|can't be|cannot be|doesn't seem|does not seem|doesn't look) "
    "(right|correct)",
    "The answer is 12. That is wrong. The answer is 42.",
)
TROUBLES = Cues(
    "In the sentence of a hesitation: the answer before it is taken back.",
    "wrong; incorrect; mistake; error; extraneous; invalid; impossible; contradict(s|ion)?; not (right|correct|possible); "
    "(doesn't|does not|don't|do not|can't|cannot) (work|be|satisfy|hold|fit|match); "
    "too (small|large|big|high|low|many|few|much); no.",
    "The answer is 12. Wait, x = 12 does not work.",
)
CONFIRMATIONS = Cues(
    "After a hesitation or a retraction: nothing is taken back after all.",
    r"(that|this|it|which|answer) (is|was|'s|seems|looks|checks|works|holds) (indeed |also |exactly |all "
    ")?(correct|right|out|good|fine|true|consistent); yes; confirmed; confirms; verified; matches; checks out; as "
    "expected; ✓; ✔; ✅",
    "The answer is 42. Wait, let me check: 6 * 7 = 42. Yes.",
)
ALTERNATIVES = Cues(
    "At the start of the sentence after a mark: the value that follows is a second answer.",
    "or; or maybe; or perhaps; or possibly; maybe; perhaps; possibly; alternatively; it could (also )?be; "
    "it might (also )?be; it is also",
    "The answer is 42. Or maybe 43.",
)
EXPLANATIONS = Cues(
    "The words from here on explain the answer and are not part of it.",
    ", not; , (i|we|approximately|about|roughly); , (it|they) (is|are|does|do|can|has|have); because; since; as "
    "(we|it|the|required|desired|claimed|shown|expected|needed|requested); which; where; so; i.e.; "
    "that is,?; or equivalently; for the; , (if|unless|although|though|even though|while|whereas|assuming|provided|given); "
    "when; after; rather than; instead of; , (meaning|leaving|giving|making|rounded|so that|and "
    "(the|this|it|we|so|you|that))",
    "The answer is 42, because 6 * 7 = 42.",
)
REFUSALS = Cues(
    "A completion or a mark that holds one of these declines to answer.",
    r"(i )?(do not|don't|dunno|cannot|can't|can not|could not|couldn't|won't|will not)( \w+)? "
    "(know|answer|say|tell|decide|determine|solve|help|respond|choose|pick|select|figure); dunno; idk; no idea; no "
    "clue; not sure; unsure; give up; (unable|refuse|decline) to; (sorry|unknown|n/a|undetermined); no answer",
    "I don't know.",
)
EXPLAINED = Cues(
    "At the start of a line: an answer above it stands alone.",
    "explanation; reasoning; reason; because; justification; note; proof; check; verification; here's why",
    "42\n\nExplanation: 6 * 7 = 42",
)
ALL = {name.lower(): table for name, table in globals().items() if isinstance(table, Cues)}
"""Every table by its name, in order."""


def tags(names: tuple[str, ...], opening: bool) -> str:
    """A pattern of the tags with these names, in angle or square brackets."""
    slash, words = ("" if opening else "/"), "|".join(map(re.escape, names))
    return rf"(?:<{slash}(?:{words})>|\[{slash}(?:{words})\])"
