"""Small chat templates in the manner of the families in use, and tokenizers that have them."""

from __future__ import annotations

from rlvr_envs import HuggingFaceTokenizer
from tests.tiny_models import byte_level_tokenizer

CHATML = """\
{%- if tools %}{{ '<|im_start|>system\\nTools:\\n' }}{% for tool in tools %}{{ tool | tojson }}{{ '\\n' }}{% endfor %}
{{- '<|im_end|>\\n' }}{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}{{- '<|im_start|>' + message.role + '\\n' + message.content }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) }}
{{- '}\\n</tool_call>' }}{% endfor %}{{- '<|im_end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""

XML = CHATML.replace(
    """{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) }}
{{- '}\\n</tool_call>' }}""",
    """{{- '<tool_call>\\n<function=' + call.function.name + '>\\n' }}
{%- for name, value in call.function.arguments.items() %}
{{- '<parameter=' + name + '>\\n' + (value if value is string else value | tojson) + '\\n</parameter>\\n' }}{% endfor %}
{{- '</function>\\n</tool_call>' }}""",
)

LLAMA = """\
{%- if tools %}{{ '<|start_header_id|>system<|end_header_id|>\\n\\n' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}
{{- '<|eot_id|>' }}{% endif %}
{%- for message in messages %}
{%- set role = 'ipython' if message.role == 'tool' else message.role %}
{{- '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' }}
{%- if message.tool_calls %}
{{- '{"name": "' + message.tool_calls[0].function.name + '", "parameters": ' }}
{{- (message.tool_calls[0].function.arguments | tojson) + '}' }}
{%- elif message.role == 'tool' %}{{- message.content | tojson }}
{%- else %}{{- message.content | trim }}{% endif %}{{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

MISTRAL = """\
{{- bos_token }}{% if tools %}{{- '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{% endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '[INST]' + message.content + '[/INST]' }}
{%- elif message.role == 'tool' %}
{%- if message.tool_call_id | length != 9 %}{{ raise_exception('a call id has nine characters') }}{% endif %}
{{- '[TOOL_RESULTS]{"content": ' + (message.content | tojson) + ', "call_id": "' + message.tool_call_id }}
{{- '"}[/TOOL_RESULTS]' }}
{%- elif message.tool_calls %}{{- '[TOOL_CALLS][' }}{% for call in message.tool_calls %}
{%- if not loop.first %}{{- ', ' }}{% endif %}{{- '{"name": "' + call.function.name + '", "arguments": ' }}
{{- (call.function.arguments | tojson) + ', "id": "' + call.id + '"}' }}
{%- endfor %}{{- ']' + eos_token }}
{%- else %}{{- message.content + eos_token }}{% endif %}
{%- endfor %}"""

HARMONY = """\
{%- if tools %}{{ '<|start|>developer<|message|>' + (tools | tojson) + '<|end|>' }}{% endif %}
{%- set last = namespace(name=none) %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{%- if last.name is none %}{{ raise_exception('there was no call') }}{% endif %}
{{- '<|start|>functions.' + last.name + ' to=assistant<|channel|>commentary<|message|>' }}
{{- (message.content | tojson) + '<|end|>' }}
{%- elif message.tool_calls %}{% set last.name = message.tool_calls[0].function.name %}
{{- '<|start|>assistant to=functions.' + last.name + '<|channel|>commentary json<|message|>' }}
{{- (message.tool_calls[0].function.arguments | tojson) + '<|call|>' }}
{%- elif message.role == 'assistant' %}{{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}
{%- else %}{{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{% endif %}"""

DEEPSEEK = """\
{{- bos_token }}{% if tools %}{{- tools | tojson }}{% endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<｜User｜>' + message.content + '<｜Assistant｜>' }}
{%- elif message.role == 'tool' %}
{{- '<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>' + message.content + '<｜tool▁output▁end｜><｜tool▁outputs▁end｜>' }}
{%- elif message.tool_calls %}{{- '<｜tool▁calls▁begin｜>' }}{% for call in message.tool_calls %}
{{- '<｜tool▁call▁begin｜>function<｜tool▁sep｜>' + call.function.name + '\\n```json\\n' }}
{{- (call.function.arguments | tojson) + '\\n```<｜tool▁call▁end｜>' }}{% endfor %}{{- '<｜tool▁calls▁end｜>' + eos_token }}
{%- else %}{{- message.content + eos_token }}{% endif %}
{%- endfor %}"""

_FAMILIES = {
    "chatml": (CHATML, "<|im_end|>", ("<|im_start|>",)),
    "xml": (XML, "<|im_end|>", ("<|im_start|>",)),
    "llama": (LLAMA, "<|eot_id|>", ("<|start_header_id|>", "<|end_header_id|>")),
    "mistral": (
        MISTRAL,
        "</s>",
        (
            *(f"[{slash}{name}]" for name in ("INST", "AVAILABLE_TOOLS", "TOOL_RESULTS") for slash in ("", "/")),
            "[TOOL_CALLS]",
        ),
    ),
    "harmony": (HARMONY, "<|return|>", tuple(f"<|{name}|>" for name in ("start", "end", "message", "channel", "call"))),
    "deepseek": (
        DEEPSEEK,
        "<｜end▁of▁sentence｜>",
        (
            "<｜User｜>",
            "<｜Assistant｜>",
            "<｜tool▁sep｜>",
            *(
                f"<｜tool▁{name}▁{edge}｜>"
                for name in ("call", "calls", "output", "outputs")
                for edge in ("begin", "end")
            ),
        ),
    ),
}
FAMILIES = tuple(_FAMILIES)

TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
ARGUMENTS = {"a": 1, "b": 22}
CALL = {"type": "function", "id": "123456789", "function": {"name": "add", "arguments": ARGUMENTS}}


def tokenizer_of(family: str) -> HuggingFaceTokenizer:
    """A byte-level tokenizer with the family's template and special tokens, some of which need a beginning."""
    template, end, special = _FAMILIES[family]
    inner = byte_level_tokenizer(end, "<s>", *special, eos_token=end, bos_token="<s>", merges=(("a", "d"), ("ad", "d")))
    inner.chat_template = template
    return HuggingFaceTokenizer(inner)
