"""Checkpoints: folders that are written atomically."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

import rlvr_envs
from agents.policies.transformers.loading import is_pretrained, save_model, saved_weights, writing_to
from agents.policies.transformers.lora import (
    ADAPTER_WEIGHTS,
    adapted_model,
    adapter_weights,
    has_adapter,
    set_adapter_weights,
)
from agents.policies.transformers.rounding import restored
from agents.runs.files.checkpoint_folder import recover, replacing
from agents.runs.files.integrity import check_checksums
from verifiers import CheckpointError

_STATE = "state.pt"
_MODEL = "model"


def save_checkpoint(
    folder: Path,
    model: Any,
    state: dict[str, Any],
    tokenizer: rlvr_envs.Tokenizer | None = None,
    *,
    dtype: torch.dtype | None = None,
) -> None:
    """Write the model, in the form that `load_policy` reads, and a state of tensors and plain data.

    Weights are saved once: `model/` has them in `dtype`, and the state has the bits that this type drops. See `save_model` for
    a model with an adapter; if the adapter is merged in `model/`, the state has the adapter itself.

    The folder is replaced as a whole; see `agents.runs.files.checkpoint_folder`.

    Args:
        folder: Folder of the checkpoint.
        model: The model.
        state: The rest of the state that training resumes from.
        tokenizer: The model's tokenizer.
        dtype: Type of the saved weights of a `transformers` model; None for the model's own type.

    Raises:
        InvalidArgumentError: If the folder contains anything but a checkpoint.
    """
    with replacing(folder, _STATE) as partial:
        dropped = save_model(partial / _MODEL, model, tokenizer, dtype=dtype)
        in_model = (partial / _MODEL / ADAPTER_WEIGHTS).is_file()
        own = {
            "dropped": {} if has_adapter(model) else dropped,
            "adapter": None if in_model else adapter_weights(model),
            "adapted": adapted_model(model),
        }
        with writing_to(folder):
            torch.save({**state, **own}, partial / _STATE)


def load_checkpoint(
    folder: Path, model: Any, *, agent: str, components: Mapping[str, Sequence[str] | None]
) -> dict[str, Any]:
    """Load the weights into the model and return the state.

    Args:
        folder: A folder written by `save_checkpoint`.
        model: The model that receives the weights, after all checks have passed.
        agent: The agent's name.
        components: Names of the weights of each component of the agent besides its policy; None for a component that the agent
            does not have.

    Raises:
        CheckpointError: If there is no checkpoint, or it is damaged or of another agent, component or model.
    """
    recover(folder)
    state = _read_state(folder)
    if state["agent"] != agent:
        raise CheckpointError(f"the checkpoint at {folder} is of agent {state['agent']!r}, not of {agent!r}")
    if has_adapter(model) != (state["adapted"] is not None):
        here, there = ("an", "none") if has_adapter(model) else ("no", "one")
        raise CheckpointError(f"the model has {here} adapter, and the checkpoint at {folder} has {there}")
    _check_model_type(folder, model)
    _check_components(folder, state["parts"], components)
    try:
        if has_adapter(model):
            adapter = state["adapter"] or load_file(folder / _MODEL / ADAPTER_WEIGHTS)
            _check_weights(folder, adapter, adapter_weights(model) or {})
            _check_adapted(folder, state["adapted"], adapted_model(model) or {})
            set_adapter_weights(model, adapter)
        else:
            saved = restored(saved_weights(folder / _MODEL, model), state["dropped"])
            _check_weights(folder, saved, model.state_dict())
            model.load_state_dict(saved)
    except RuntimeError as error:
        raise CheckpointError(f"the checkpoint at {folder} is of another model: {error}") from error
    return state


def agent_of(folder: Path) -> str:
    """The name of the agent that was saved.

    Raises:
        CheckpointError: As for `load_checkpoint`.
    """
    return str(_read_state(folder)["agent"])


def _read_state(folder: Path) -> dict[str, Any]:
    if not (folder / _STATE).is_file():
        raise CheckpointError(f"no checkpoint at {folder}: expected a folder with {_STATE} and {_MODEL}/")
    check_checksums(folder)
    try:
        # Load to the CPU, since this machine may not have the device that the checkpoint was saved from.
        state: dict[str, Any] = torch.load(folder / _STATE, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"the checkpoint at {folder} is damaged: {_STATE} can't be read ({error})") from error
    return state


def _check_components(
    folder: Path, saved: Mapping[str, Sequence[str] | None], wanted: Mapping[str, Sequence[str] | None]
) -> None:
    for name in {**wanted, **saved}:
        weights, other = wanted.get(name), saved.get(name)
        if other == weights:
            continue
        phrases = (f"no {name}", f"a {name}") if other is None else (f"a {name}", f"no {name}")
        there, here = phrases if None in (other, weights) else (f"one kind of {name}", "another")
        raise CheckpointError(
            f"the checkpoint at {folder} has {there}, and this agent has {here}: use the config it was saved with"
        )


def _check_weights(folder: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Check all shapes first, since `load_state_dict` copies the weights that fit before it raises."""
    for name in {**wanted, **saved}:
        there, here = (None if name not in weights else tuple(weights[name].shape) for weights in (saved, wanted))
        if there != here:
            raise CheckpointError(
                f"the checkpoint at {folder} is of another model: the shape of {name} is {there} there and {here} here"
            )


def _check_adapted(folder: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Check that an adapter is loaded with the same scale and the same base weights."""
    for name, there in saved.items():
        if there != wanted.get(name):
            raise CheckpointError(
                f"the adapter at {folder} is of another model: its {name} is {there} there and {wanted.get(name)} here"
            )


def _check_model_type(folder: Path, model: Any) -> None:
    """Check the model type; `transformers` loads weights of another class if names agree, and initialises the rest."""
    if not is_pretrained(model) or not (folder / _MODEL / "config.json").is_file():
        return  # an adapter has no such file; a checksum of the base's weights is checked
    model_type = json.loads((folder / _MODEL / "config.json").read_text(encoding="utf-8"))["model_type"]
    if model_type != model.config.model_type:
        raise CheckpointError(
            f"the checkpoint at {folder} is of another model: a {model_type}, and this is a {model.config.model_type}"
        )
