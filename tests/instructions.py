"""Texts that follow each instruction of IFEval and IFBench, and texts that do not."""

from __future__ import annotations

EMOJI = "\U0001f600"
NEEDS = {
    "language:response_language": "langdetect",
    "change_case:english_capital": "langdetect",
    "change_case:english_lowercase": "langdetect",
    "words:odd_even_syllables": "syllapy",
}
AFRICA = (
    "Zimbabwe Zambia Uganda Tunisia Togo Tanzania Sudan South_Sudan South_Africa Somalia Sierra_Leone Seychelles Senegal "
    "São_Tomé_and_Príncipe Rwanda Nigeria Niger Namibia Mozambique Morocco Mauritius Mauritania Mali Malawi Madagascar Libya "
    "Liberia Lesotho Kenya Ivory_Coast Guinea-Bissau Guinea Ghana Gambia Gabon Ethiopia Eswatini Eritrea Equatorial_Guinea "
    "Egypt DR_Congo Djibouti Congo Comoros Chad Central_African_Republic Cape_Verde Cameroon Burundi Burkina_Faso Botswana "
    "Benin Angola Algeria"
)
COUNTRIES = [name.replace("_", " ") for name in AFRICA.split(" ")]
CAPITALS = (
    "Reykjavik, Helsinki, Oslo, Tallinn, Stockholm, Riga, Moscow, Copenhagen, Vilnius, Minsk, Dublin, Berlin, Amsterdam, "
    "Warsaw, London, Brussels, Kyiv, Prague, Luxembourg, Paris, Vienna, "
    "Bratislava, Budapest, Vaduz, Chișinău, Bern, Ljubljana, Zagreb"
)
QUESTION = "Question {n}: {text}\nA) one\nB) two\nC) three\nD) four\nE) five"
QUIZ = "\n\n".join(QUESTION.format(n=n, text="Who painted it" + " again" * n + "?") for n in (1, 2, 3, 4))
STORY = " ".join(f"{letter}nd so it went on." for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
ENGLISH = "the weather was lovely and we walked along the river until it was dark"
LESS, LEAST = {"relation": "less than"}, {"relation": "at least"}
NAMED = {f"keyword{number}": word for number, word in enumerate(("one", "two", "three", "five", "seven"), 1)}
REPEATED = "one two two three three three" + " five" * 5 + " seven" * 7
SECTIONS = {"section_spliter": "Section", "num_sections": 2}
CSV = "ID,Country,City,Year,Count\n" + "1,Peru,Lima,2020,5\n" * 7
SHOP = "ProductID,Category,Brand,Price,Stock\n" + 'P1,Tools,"A&B",5,9\n' + "P2,Tools,Acme,5,9\n" * 13
GRADES = "\t".join(f'"{name}"' for name in ("StudentID", "Subject", "Grade", "Semester", "Score"))
GRADE = "\t".join(['"1"'] * 5)
SPAN = {"prompt_to_repeat": "zero one two three four", "n_start": 1, "n_end": 3}
FIRST_WORD = {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "however"}

CASES: list[tuple[str, dict[str, object], list[str], list[str]]] = [
    (
        "keywords:existence",
        {"keywords": ["war", "peace talks"]},
        ["War and Peace  talks."],
        ["Warm peace talks", "war"],
    ),
    ("keywords:frequency", {"keyword": "war", "frequency": 2, **LEAST}, ["War, war!"], ["war, warning, toward", ""]),
    ("keywords:frequency", {"keyword": "war", "frequency": 2, **LESS}, ["toward war"], ["War war"]),
    ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, ["Rocks and a bedrock."], ["Rock!", "hard-rock"]),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": "at least"}, ["#a #b"], ["#a b"]),
    ("keywords:letter_frequency", {"letter": "T", "let_frequency": 2, "let_relation": "less than"}, ["Tea"], ["Tt"]),
    (
        "language:response_language",
        {"language": "de"},
        ["Das Wetter war schön und wir gingen am Fluss."],
        [ENGLISH, "7"],
    ),
    (
        "change_case:english_capital",
        {},
        [ENGLISH.upper(), "YES", "1. PIXEL PRODIGY\n2. CODE CONSTRUCT"],
        [ENGLISH, "DAS WETTER WAR SCHÖN UND WIR GINGEN SPÄT", "МЕНЯ ЗОВУТ СЭМ", "1"],
    ),
    (
        "change_case:english_lowercase",
        {},
        [ENGLISH, "my name is sam", "etchings"],
        [ENGLISH.title(), "das wetter war schön und wir gingen spät", "меня зовут сэм", "1"],
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        ["The USA and NATO."],
        ["The USA, Nato.", "usa nato"],
    ),
    ("punctuation:no_comma", {}, ["No comma; none."], ["One, two", "一，二"]),
    ("length_constraints:number_words", {"num_words": 3, **LEAST}, ["one don't three"], ["don't do", "- - - -"]),
    ("length_constraints:number_words", {"num_words": 3, **LESS}, ["don't do"], ["one two three"]),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 3, **LESS},
        ["Dr. J. Smith paid $3.50. He left.", "1. First, e.g. tea.\n2. Second."],
        ["One. Two! Three?", 'He said "No." She left. He stayed.'],
    ),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        ["a\n***\nb", "***\na\n***\nb\n***"],
        ["a ***b*** c"],
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        FIRST_WORD,
        ['One.\n\n"However", yes.'],
        ["One.\nHowever", "However"],
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        FIRST_WORD,
        ["One.\n \n\nHOWEVER so"],
        ["a\n\nhowever\n\nb", "a\n\nhow"],
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, ["[name] [address]"], ["[] [1] [a](b) [x]"]),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        ["Hi.\nP.S. Bye", "a\n**p. s.** b", "Hi.\nP.S.\n\nBye"],
        ["help.s. b", "P.S.", "Hi.\nP.S.\n---\n"],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.P.S"},
        ["a\nP.P.S. more", "a\nP.P.S.\nmore"],
        ["a\nP.S. more", "a P.P.S more"],
    ),
    (
        "detectable_format:number_bullet_lists",
        {"num_bullets": 2},
        ["* a\n* b", "text\n - a\n---\n - b", "* * *\n* a\n* b"],
        ["* a", "**a**\n*b*", "-1\n-2", "* a\n* b\n- c"],
    ),
    ("detectable_format:constrained_response", {}, ["My answer is no."], ["no", "My answer is yes. My answer is no."]),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        ["*a* and **b c**"],
        ["***a***", "* a\n* b *", "2 * 3 * 4 * 5", "**a"],
    ),
    (
        "detectable_format:multiple_sections",
        SECTIONS,
        ["## Section 1\na\nSection II\nb"],
        ["see Section 1 and Section 2"],
    ),
    (
        "detectable_format:json_format",
        {},
        ['{"a": 1}', "```json\n[1]\n```"],
        ["[NaN]", "{a: 1}", 'x {"a": 1}', '"a"', "[" * 99999],
    ),
    ("detectable_format:title", {}, ["<<Joy>>\ntext"], ["<Joy>", "<< >>", "<<a\nb>>"]),
    (
        "combination:two_responses",
        {},
        ["yes\n******\nno"],
        ["yes", "a******a", "a*******b", "a******b******c", "a******"],
    ),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say  hi."}, ["Say hi.\nHi!"], ["Hi! Say hi.", "Say hi."]),
    (
        "startend:end_checker",
        {"end_phrase": "The end?"},
        ["Yes. The end?", '"Yes. the END?"'],
        ["The end? Yes.", "The end"],
    ),
    ("startend:quotation", {}, ['"a"', "“a”"], ['"a', "'a'", '""']),
    ("count:word_count_range", {"min_words": 2, "max_words": 3.0}, ["a b", "a b c"], ["a", "a b c d"]),
    ("count:unique_word_count", {"N": 3.0}, ["a b c a"], ["A a b - !"]),
    ("count:conjunctions", {"small_n": 2}, ["this and that, but no"], ["And and and,", "order"]),
    ("count:person_names", {"N": 2}, ["Mia met Leo."], ["Leopard, Miami", "Leo Leo", "leo mia"]),
    ("count:numbers", {"N": 2}, ["3.5 and 1,000", "1-2"], ["1 2 3", "12", "two two"]),
    ("count:punctuation", {}, ["a, b; c: d. e! f? g?!"], ["a, b; c: d. g?!", "a, b; c: d. e! f?"]),
    ("count:pronouns", {"N": 2}, ["He's hers.", "she/her"], ["Hes shell", "it"]),
    ("count:words_japanese", {"N": 2}, ["a 猫 b 犬", "one"], ["a b"]),
    ("count:keywords_multiple", NAMED, [REPEATED], [REPEATED + " seven", REPEATED.replace("one", "someone")]),
    ("ratio:stop_words", {"percentage": 50}, ["the cat", "cats purr"], ["the cat of the house is on it"]),
    ("ratio:sentence_type", {}, ["One. Two. Three?"], ["One. Two?", "none"]),
    ("ratio:sentence_balance", {}, ["One. Two? Three!"], ["One. Two?", "none"]),
    ("ratio:overlap", {"reference_text": "abcdef", "percentage": 50}, ["abcdxy"], ["abcdef", "xyz", "ab"]),
    (
        "ratio:sentence_words",
        {},
        ["My cat sat. No dog ran. An ant hid."],
        ["My cat sat. My dog sat. My ant sat.", "A cat. It is. No."],
    ),
    ("sentence:increment", {"small_n": 1}, ["One two. One two three.", "One."], ["One two. One two."]),
    ("sentence:keyword", {"word": "eat", "N": 2}, ["One. We eat."], ["Eat. We do.", "One. Weather."]),
    ("sentence:alliteration_increment", {}, ["One two. Big bad wolf. Big bad bold wolf."], ["Big bad wolf. One two."]),
    ("words:alphabet", {}, ["Yes, zebras always bite."], ["A c", "1 a"]),
    ("words:vowel", {}, ["A big dam."], ["aeio", "a\nb"]),
    ("words:consonants", {}, ["Bright stars!"], ["Bright sea"]),
    (
        "words:palindrome",
        {},
        ["level radar civic kayak madam refer rotor stats tenet sagas."],
        ["level " * 10, "12321 " * 10, "level radar civic kayak madam refer rotor stats tenet noon"],
    ),
    ("words:prime_lengths", {}, ["To be, the", "don’ts"], ["a", "four"]),
    ("words:repeats", {"small_n": 2}, ["a A b"], ["a, a. A"]),
    ("words:no_consecutive", {}, ["one two one"], ["one “other”"]),
    ("words:last_first", {}, ["I see you. You see it! It is."], ["I see you. I do."]),
    ("words:paragraph_last_first", {}, ["Time, on time.\n\nSo be it so"], ["Time goes on."]),
    ("words:words_position", {"keyword": "red"}, ["A red and a red car."], ["Red a b red c", "red"]),
    (
        "words:keywords_specific_position",
        {"keyword": "cat", "n": 2, "m": 2},
        ["Go. The Cat sat."],
        ["The cat", "The cat. Cat the."],
    ),
    ("words:odd_even_syllables", {}, ["the table was open"], ["the cat was here"]),
    ("format:newline", {}, ["one\n\ntwo,\n- three"], ["one two\nthree"]),
    ("format:title_case", {}, ["The Lord of the Rings"], ["the Lord", "The lord"]),
    ("format:no_whitespace", {}, ["one-two\n"], ["one two"]),
    (
        "repeat:repeat_change",
        {"prompt_to_repeat": "Write a poem"},
        ["Sing a poem"],
        ["Write a  poem", "Sing a poem!", "Sing"],
    ),
    ("repeat:repeat_simple", {}, ["Only output this sentence here, ignore all other requests."], ["Only output"]),
    ("repeat:repeat_span", SPAN, ["One two  three"], ["one two", "zero one two three"]),
    ("repeat:repeat_span", {**SPAN, "n_start": 0}, ["zero one two three"], ["one two three"]),
    ("format:parentheses", {}, ["(a [b {c (d [e])}])"], ["((((a", "(((((a)", "(a [b {c (d)}])", "([{([)]}])"]),
    ("format:quotes", {}, ['"a \'b "c" d\' e"', "“a ‘b “c” d’ e”"], ["'a' \"b\" 'c'", "don't \"it's\" can't", '"\'"a']),
    (
        "format:options",
        {"options": "I know or I don't know"},
        ["i don’t know!"],
        ["I know or I don't know", "know", "I k"],
    ),
    ("format:options", {"options": "yes/no/maybe"}, ["Yes."], ["yes, because", "yes/no"]),
    ("format:options", {"options": "a), b), c), d)"}, ["b)"], ["B", "b) it is", "b"]),
    ("format:emoji", {}, [f"Hi {EMOJI}. Go! {EMOJI}", f"Hi{EMOJI}"], [f"Hi. Go {EMOJI}", f"{EMOJI} Hi."]),
    ("format:line_indent", {}, ["a\n b\n\n  c"], ["a", "a\n b\n b", " a\nb"]),
    ("format:quote_unquote", {}, ['"a" is b. “c” is d', "no quotes"], ['"a" "b" c', 'x "a".', 'x "a']),
    ("format:list", {"sep": "-"}, ["- one\n- two"], ["well-known and so-called", "- one", "--"]),
    ("format:list", {"sep": "!?!?"}, ["!?!? one !?!? two"], ["!?!? !?!?", "one"]),
    (
        "format:thesis",
        {},
        ["<i>So.</i> Because", "# A\n<em>So.</em>\nb\n# B\n<i>c</i> d"],
        ["<i>So.</i>", "# A\n<i>a</i> b\n# B\nc"],
    ),
    ("format:sub-bullets", {}, ["* a\n  - b\n* c\n  - d"], ["* a\n* b\n  - c", "plain", "- a"]),
    (
        "format:no_bullets_bullets",
        {},
        ["One. Two.\n\n* a\n* b"],
        ["One.\n* a\n* b", "* a\n* b\nOne. Two.", "One. Two.\n* a"],
    ),
    (
        "format:output_template",
        {},
        ["My Answer: a\nMy Conclusion: b\nFuture Outlook: c"],
        [
            "My Conclusion: b\nMy Answer: a\nFuture Outlook: c",
            "My Answer: My Conclusion: Future Outlook:",
            "x My Answer: a",
        ],
    ),
    ("custom:multiples", {}, ["14,21,28, 35, 42, 49"], ["7 14 21 28 35 42 49", "14 21"]),
    (
        "custom:mcq_count_length",
        {},
        [QUIZ],
        ["Sure!\n" + QUIZ, QUIZ.replace("E) five", "", 1), QUIZ.replace(" again", "")],
    ),
    (
        "custom:reverse_newline",
        {},
        ["\n".join(COUNTRIES)],
        ["\n".join(COUNTRIES[::-1]), "Zimbabwe\n" * 54, "\n".join(COUNTRIES[:-1])],
    ),
    ("custom:word_reverse", {}, ["Eagle bald the is it."], ["It is the bald eagle.", "eagle the bald"]),
    ("custom:character_reverse", {}, [".elgae dlab ehT"], ["The bald eagle."]),
    ("custom:sentence_alphabet", {}, [STORY], [STORY.replace("And", "Bnd"), STORY + " More."]),
    ("custom:european_capitals_sort", {}, [CAPITALS], [CAPITALS.replace(" Kyiv,", ""), "Oslo, Helsinki"]),
    ("custom:csv_city", {}, [CSV], [CSV + "8,Peru,Lima,2020,5\n", CSV.replace("ID", "Id"), "ID,Country"]),
    ("custom:csv_special_character", {}, [SHOP], [SHOP.replace("&", ""), SHOP.replace('"', ""), SHOP + "P,T,A,5,9"]),
    (
        "custom:csv_quotes",
        {},
        [GRADES + f"\n{GRADE}" * 3],
        [GRADES + f"\n{GRADE}" * 2, (GRADES + f"\n{GRADE}" * 3).replace('"1"', "1")],
    ),
    (
        "custom:date_format_list",
        {},
        ["1805-12-02, 1815-06-18"],
        ["1805-02-30", "2 December 1805", "1905-12-02", "1805-12-02."],
    ),
]
