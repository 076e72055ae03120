"""Heads of process reward models: the probability, at a mark, that the step before the mark is right."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from verifiers._models import is_causal, load_config, load_pretrained, move_to_device, padded
from verifiers.errors import InvalidArgumentError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

Head = Literal["token_classifier", "mlp", "value_head", "token_pair"]


class StepModel:
    """A process reward model: a transformer with a head that scores tokens.

    | head | the probability is | read by |
    |---|---|---|
    | `token_classifier` | softmax of two labels, label 1 | `AutoModelForTokenClassification` |
    | `mlp` | the same, of Linear-ReLU-Linear named `score` | `AutoModel`, and the head built here |
    | `value_head` | sigmoid of one number, of a linear layer named `v_head.summary` | the same |
    | `token_pair` | softmax of the logits of two tokens, the first | `AutoModelForCausalLM` |

    `mlp` is the head of Qwen2.5-Math-PRM. That model's own code, which transformers from 4.54 on can't run, is not needed.

    Args:
        name: A hub name or a folder.
        head: A head from the table.
        labels: The two tokens of a `token_pair`; the first means that a step is right.
        device: Where to run, as for `verifiers.devices.choose_device`; by default the GPU if there is one. On the CPU the model
            computes in 32-bit floats.

    Raises:
        InvalidArgumentError: If there is no such model, weights of the head are missing, the head has another number of labels,
            or the model's tokens attend to later tokens.
    """

    def __init__(
        self, name: str | PathLike[str], head: Head, labels: tuple[int, int] | None, device: str | torch.device | None
    ) -> None:
        self._head = head
        self._labels = labels
        self.model = _loaded(name, head)
        if not is_causal(self.model.config):
            raise InvalidArgumentError(
                f"{str(name)!r} is a {type(self.model.config).__name__[: -len('Config')]} model, whose tokens attend to later "
                "ones: the score of a step would depend on the steps after it"
            )
        move_to_device(self.model, device)

    def probabilities(self, texts: Sequence[list[int]], scored: Sequence[list[int]]) -> list[list[float]]:
        """Score tokenised texts at the indices in `scored`, in one forward pass in which no text depends on another."""
        import torch

        rows = torch.tensor([row for row, indices in enumerate(scored) for _ in indices])
        columns = torch.tensor([index for indices in scored for index in indices])
        with torch.inference_mode():
            values = self._at(padded(texts, self.model), rows, columns)
        flat = iter(values.float().tolist())
        return [[next(flat) for _ in indices] for indices in scored]

    def _at(self, inputs: dict[str, torch.Tensor], rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Probabilities f32[k] of tokens i64[k] in rows i64[k] of a batch."""
        import torch

        model: Any = self.model
        values: torch.Tensor
        if self._head == "token_pair":
            # Logits of the whole vocabulary at every token would take most of the memory.
            kept, column = torch.unique(columns, return_inverse=True)
            logits = model(**inputs, use_cache=False, logits_to_keep=kept.to(model.device)).logits
            values = logits[rows, column][:, list(self._labels or ())]
        elif self._head == "token_classifier":
            values = model(**inputs, use_cache=False).logits[rows, columns]
        else:
            values = model(inputs, rows, columns)
        values = values.float()
        if self._head == "value_head":
            return values[:, 0].sigmoid()
        return values.softmax(-1)[:, 0 if self._head == "token_pair" else 1]


def _loaded(name: str | PathLike[str], head: Head) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM, AutoModelForTokenClassification

    if head in ("mlp", "value_head"):
        model, missing = _loaded_body(name, head)
    else:
        cls: Any = AutoModelForCausalLM if head == "token_pair" else AutoModelForTokenClassification
        model, missing = load_pretrained(cls, name, f"model with the head {head!r}", trust_remote_code=False)
    if missing:
        raise InvalidArgumentError(
            f"{str(name)!r} holds no trained {head} head: the weights {missing} are missing and would be random"
        )
    if head == "token_classifier" and model.config.num_labels != 2:
        raise InvalidArgumentError(
            f"{str(name)!r} has {model.config.num_labels} labels; expected a token classifier with two, wrong and right"
        )
    return model


def _loaded_body(name: str | PathLike[str], head: Head) -> tuple[PreTrainedModel, list[str]]:
    import torch
    from transformers import AutoModel, PreTrainedModel

    class BodyAndHead(PreTrainedModel):  # type: ignore[misc] # transformers is not type-checked
        """A transformer and a head on its last hidden states, under the names that checkpoints of this head use."""

        base_model_prefix = "model"
        _supports_sdpa = True

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            width = config.get_text_config().hidden_size
            self.model = AutoModel.from_config(config)
            if head == "mlp":
                layers = (torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))
                self.score = torch.nn.Sequential(*layers)
            else:
                self.v_head = torch.nn.ModuleDict({"summary": torch.nn.Linear(width, 1)})
            self.post_init()

        def forward(self, inputs: Any, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
            """The values f[k c] of the head at k tokens."""
            states = self.model(**inputs, use_cache=False).last_hidden_state[rows, columns]
            values: torch.Tensor = self.score(states) if head == "mlp" else self.v_head["summary"](states)
            return values

    return load_pretrained(BodyAndHead, name, f"model with the head {head!r}", config=load_config(name))
