"""`check_policy`: checks by trials whether a policy satisfies the contract of `TrainablePolicy`.

Agents rely on these properties: log-probabilities computed for training are those of the sampling distribution, they depend
only on earlier tokens, and their gradients reach the weights.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agents.batch import Batch, make_batch
from agents.policies.trainable import TrainablePolicy, check_members
from agents.types import Action, Trajectory
from verifiers import InvalidArgumentError

_TOLERANCE = 1e-3
"""Largest difference of a token's log-probabilities between two passes: far above float32 rounding, far below mistakes."""
_HALF_TOLERANCE = 0.1
_STEPS = 4
_PROMPTS = (3, 1, 2)
"""The lengths of the trial prompts."""


def check_policy(policy: TrainablePolicy, *, seed: int = 0) -> None:
    """Check a policy on a few tokens; its weights are changed and then restored.

    Args:
        policy: A policy whose model has at least two tokens, at a temperature above 0.
        seed: Seed of the tokens.

    Raises:
        InvalidArgumentError: If a check fails; the message states what was expected, the actual result, and the usual cause.
    """
    _check_members(policy)
    checker = _PolicyChecker(policy, seed)
    checker.acting()
    checker.greedy()
    checker.reading()
    checker.causality()
    checker.legal_tokens()
    checker.distributions()
    checker.states()
    checker.gradients()
    checker.copies()
    checker.updates()


def _require(holds: bool, expected: str, came: object, hint: str) -> None:
    if not holds:
        raise InvalidArgumentError(f"agents can't train this policy. Expected: {expected}; got {came}. {hint}")


def _check_members(policy: Any) -> None:
    check_members(policy)
    _require(
        isinstance(policy.model, torch.nn.Module),
        "`model` is the torch.nn.Module that holds the weights",
        type(policy.model).__name__,
        "It is saved in checkpoints and copied for a reference policy",
    )
    _require(policy.temperature > 0, "a temperature above 0", policy.temperature, "Greedy policies don't learn")
    own = {id(weight) for weight in policy.model.parameters()}
    learning = list(policy.parameters())
    _require(
        bool(learning) and all(weight.requires_grad and id(weight) in own for weight in learning),
        "`parameters()` returns weights of `model` that require a gradient",
        f"{len(learning)} weights, {sum(id(weight) in own for weight in learning)} of them of the model",
        "A weight that is not in `model` is neither saved nor copied",
    )
    _require(
        not any(
            isinstance(module, torch.nn.Dropout) and module.p > 0 and module.training
            for module in policy.model.modules()
        ),
        "a model without active dropout",
        "dropout in training mode",
        "With dropout the stored log-probabilities are not those that are trained: call model.eval()",
    )


class _PolicyChecker:
    def __init__(self, policy: TrainablePolicy, seed: int) -> None:
        self.policy = policy
        self.generator = np.random.default_rng(seed)
        self.seeds = self.generator.integers(2**63, size=len(_PROMPTS), dtype=np.uint64)
        self.tolerance = _HALF_TOLERANCE if policy.is_half else _TOLERANCE
        self.width = max(_PROMPTS) + _STEPS
        self.tokens = np.zeros((len(_PROMPTS), self.width), dtype=np.int32)
        for row, length in enumerate(_PROMPTS):
            self.tokens[row, :length] = self.generator.integers(policy.vocab_size, size=length)
        self.length = np.array(_PROMPTS)
        self.logprobs = np.zeros((len(_PROMPTS), self.width), dtype=np.float32)
        self.batch = self._play()

    def _observation(self, rows: NDArray[np.int64] | None = None) -> dict[str, NDArray[np.int32]]:
        chosen = np.arange(len(self.tokens)) if rows is None else rows
        return {"tokens": self.tokens[chosen].copy(), "length": self.length[chosen, None].astype(np.int32)}

    def _act(self, **arguments: Any) -> Action:
        rows = np.arange(len(self.tokens))
        self.policy.begin(rows, self.seeds)
        return self.policy.act(self._observation(), **arguments)

    def _play(self) -> Batch:
        """Let the policy generate a few tokens after each prompt, and make a batch of them."""
        self.policy.begin(np.arange(len(self.tokens)), self.seeds)
        for _ in range(_STEPS):
            action = self.policy.act(self._observation())
            self._check_action(action)
            rows = np.arange(len(self.tokens))
            self.tokens[rows, self.length] = action.tokens[:, 0]
            self.logprobs[rows, self.length] = action.logprobs[:, 0]
            self.length = self.length + 1
        return make_batch([self._trajectory(row) for row in range(len(self.tokens))]).to(self.policy.device)

    def _trajectory(self, row: int) -> Trajectory:
        length, prompt = int(self.length[row]), _PROMPTS[row]
        return Trajectory(
            problem_id=str(row),
            group=row,
            prompt_length=prompt,
            terminated=True,
            truncated=False,
            verdict=None,
            completion="",
            tokens=self.tokens[row, :length].copy(),
            policy_mask=np.arange(length) >= prompt,
            logprobs=self.logprobs[row, :length].copy(),
            rewards=np.zeros(length),
            policy_version=np.zeros(length, dtype=np.int32),
        )

    def _check_action(self, action: Action) -> None:
        rows, v = len(self.tokens), self.policy.vocab_size
        shapes = (action.tokens.shape, action.counts.shape, action.logprobs.shape)
        _require(
            shapes == ((rows, 1), (rows,), (rows, 1)) and action.tokens.dtype == np.int64,
            f"act() returns tokens i64[{rows} 1], counts i64[{rows}] and logprobs f32[{rows} 1] for {rows} rows",
            f"shapes {shapes}, tokens of {action.tokens.dtype}",
            "Observations have tokens i32[b l] and length i32[b 1]",
        )
        fits = (action.tokens >= 0).all() and (action.tokens < v).all() and (action.counts == 1).all()
        _require(bool(fits), f"one token in [0, {v}) for each row", action.tokens.tolist(), "vocab_size is the model's")
        _require(
            bool(np.isfinite(action.logprobs).all() and (action.logprobs <= 0).all()),
            "natural logs of probabilities",
            action.logprobs.tolist(),
            "Take log_softmax of the logits, divided by the temperature",
        )

    def acting(self) -> None:
        """Check that actions depend only on a row's own tokens and seed."""
        again = self._act()
        action = self._act()
        _require(
            bool((action.tokens == again.tokens).all()),
            "the same tokens for the same observation and the same seeds of begin()",
            f"{again.tokens[:, 0].tolist()}, then {action.tokens[:, 0].tolist()}",
            "Sample with numbers that depend on the row's seed and the length, such as agents.seeding.uniforms",
        )
        old = self.tokens.copy()
        for row, length in enumerate(self.length):
            self.tokens[row, length:] = self.generator.integers(self.policy.vocab_size, size=self.width - length)
        padded = self._act()
        self.tokens = old
        self._same(
            action.logprobs, padded.logprobs, "an action that does not depend on padding", "Read `length` tokens"
        )
        last = np.array([len(self.tokens) - 1])
        self.policy.begin(np.array([0]), self.seeds[last])
        alone = self.policy.act(self._observation(last))
        self._same(
            action.logprobs[last],
            alone.logprobs,
            "an action that does not depend on other rows",
            "Use no batch statistics",
        )

    def greedy(self) -> None:
        """Check that the likeliest token is chosen at temperature 0."""
        greedy = self.policy.at_temperature(0.0)
        first, second = (greedy.act(self._observation()).tokens for _ in range(2))
        _require(
            bool((first == second).all()),
            "at_temperature(0) chooses the same tokens each time",
            f"{first[:, 0].tolist()}, then {second[:, 0].tolist()}",
            "Choose the likeliest token",
        )

    def reading(self) -> None:
        """Check that `read` returns the log-probabilities with which tokens were sampled."""
        with torch.no_grad():
            outputs = self.policy.read(self.batch)
        first, mask = self.batch.first, self.batch.loss_mask[:, self.batch.first :]
        shape = tuple(mask.shape)
        _require(
            tuple(outputs.logprobs.shape) == shape and tuple(outputs.entropy.shape) == shape,
            f"read() returns log-probabilities and entropies of shape {shape}, from token micro_batch.first={first} on",
            f"{tuple(outputs.logprobs.shape)} and {tuple(outputs.entropy.shape)}",
            "The distribution of token t comes from the logits at position t - 1",
        )
        self._same(
            self.batch.logprobs[:, first:][mask].cpu().numpy(),
            outputs.logprobs[mask].cpu().numpy(),
            "read() returns the log-probabilities with which act() sampled",
            "Both divide by the temperature, and the logits at position t - 1 belong to token t",
        )
        entropy = outputs.entropy[mask]
        most = float(np.log(self.policy.vocab_size)) + self.tolerance
        _require(
            bool(((entropy > -self.tolerance) & (entropy < most)).all()),
            f"entropies in nats, from 0 to log(vocab_size) = {most:.3f}",
            entropy.tolist(),
            "H = -sum p log p",
        )

    def causality(self) -> None:
        """Check that later tokens and other rows have no effect."""
        tokens = self.batch.tokens.clone()
        ends = self.batch.lengths - 1
        rows = torch.arange(len(tokens), device=tokens.device)
        tokens[rows, ends] = (tokens[rows, ends] + 1) % self.policy.vocab_size
        other = dataclasses.replace(self.batch, tokens=tokens)
        with torch.no_grad():
            before, after = (self.policy.read(batch).logprobs for batch in (self.batch, other))
        mask = self.batch.loss_mask.clone()
        mask[rows, ends] = False
        kept = mask[:, self.batch.first :]
        self._same(
            before[kept].cpu().numpy(),
            after[kept].cpu().numpy(),
            "log-probabilities that depend only on earlier tokens",
            "Another last token changed those before it: the model attends to later tokens",
        )
        single = self.batch.rows(torch.tensor([1], device=tokens.device))
        with torch.no_grad():
            alone = self.policy.read(single).logprobs
        own = single.loss_mask[:, single.first :]
        whole = before[1, single.first - self.batch.first :][: own.shape[1]][own[0]]  # this row has the shortest prompt
        self._same(
            whole.cpu().numpy(),
            alone[own].cpu().numpy(),
            "log-probabilities that do not depend on other rows",
            "Use no batch statistics",
        )

    def legal_tokens(self) -> None:
        """Check that illegal tokens have probability 0 in `act` and `read`."""
        v = self.policy.vocab_size
        allowed = np.zeros((len(self.tokens), v), dtype=np.int8)
        rows = np.arange(len(self.tokens))
        only = (self._act().tokens[:, 0] + 1) % v
        allowed[rows, only] = 1
        action = self._act(action_mask=allowed)
        _require(
            bool((action.tokens[:, 0] == only).all() and (np.abs(action.logprobs) < self.tolerance).all()),
            "the one legal token, with log-probability 0, where action_mask allows one",
            f"tokens {action.tokens[:, 0].tolist()} for {only.tolist()}, log-probabilities {action.logprobs[:, 0].tolist()}",
            "Mask the logits before log_softmax",
        )
        packed = np.packbits(np.eye(v, dtype=bool)[self.batch.tokens.cpu().numpy()], axis=-1)
        with torch.no_grad():
            batch = dataclasses.replace(self.batch, legal=torch.from_numpy(packed).to(self.policy.device))
            logprobs = self.policy.read(batch).logprobs[self.batch.loss_mask[:, self.batch.first :]]
        _require(
            bool((logprobs.abs() < self.tolerance).all()),
            "read() returns log-probability 0 for a token that was the only legal one",
            logprobs.tolist(),
            "Mask the logits with micro_batch.legal_tokens(micro_batch.first, vocab_size)",
        )

    def distributions(self) -> None:
        """Check that `distributions` agrees with `read`."""
        first = self.batch.first
        with torch.no_grad():
            logprobs = self.policy.distributions(self.batch.tokens, first)
            read = self.policy.read(self.batch).logprobs
        shape = (*self.batch.tokens[:, first:].shape, self.policy.vocab_size)
        _require(tuple(logprobs.shape) == shape, f"distributions() of shape {shape}", tuple(logprobs.shape), "[b t v]")
        mask = self.batch.loss_mask[:, first:]
        chosen = logprobs.gather(-1, self.batch.tokens[:, first:, None])[..., 0]
        self._same(
            read[mask].cpu().numpy(),
            chosen[mask].cpu().numpy(),
            "distributions() whose entry at each token equals the result of read()",
            "Log-probabilities at the policy's temperature",
        )

    def states(self) -> None:
        """Check that the states for a critic have the right shape."""
        rows, t = self.batch.tokens[:, self.batch.first :].shape
        shape = (rows, t + 1, self.policy.state_size)
        with torch.no_grad():
            states = self.policy.read_states(self.batch)
            beside = self.policy.read(self.batch, with_states=True).states
        _require(tuple(states.shape) == shape, f"read_states() of shape {shape}", tuple(states.shape), "[b t+1 d]")
        _require(
            beside is not None and tuple(beside.shape) == shape,
            f"read(with_states=True).states of shape {shape}",
            None if beside is None else tuple(beside.shape),
            "The inputs of the output layer before each token, and after the last",
        )

    def gradients(self) -> None:
        """Check that the gradient of log-probabilities reaches the weights."""
        self.policy.model.zero_grad(set_to_none=True)
        total = self.policy.read(self.batch).logprobs[self.batch.loss_mask[:, self.batch.first :]].sum()
        if total.requires_grad:
            total.backward()
        sizes = [
            0.0 if parameter.grad is None else float(parameter.grad.abs().sum())
            for parameter in self.policy.parameters()
        ]
        self.policy.model.zero_grad(set_to_none=True)
        _require(
            any(sizes) and bool(np.isfinite(sizes).all()),
            "read() returns log-probabilities whose gradient reaches the weights",
            f"gradients of sizes {sizes}",
            "read() must track gradients: no torch.no_grad(), no detach()",
        )

    def copies(self) -> None:
        """Check that a policy on a copy of the model returns the same log-probabilities."""
        other = self.policy.with_model(copy.deepcopy(self.policy.model))
        mask = self.batch.loss_mask[:, self.batch.first :]
        with torch.no_grad():
            mine, theirs = (policy.read(self.batch).logprobs[mask] for policy in (self.policy, other))
        self._same(
            mine.cpu().numpy(),
            theirs.cpu().numpy(),
            "with_model() returns a policy with the same settings on a copy of the model",
            "It is the reference policy of a KL term",
        )

    def updates(self) -> None:
        """Check that the policy acts with the new weights after an update."""
        version = self.policy.version
        saved = [parameter.detach().clone() for parameter in self.policy.parameters()]
        before = self._act().logprobs
        with torch.no_grad():
            for parameter in self.policy.parameters():
                parameter.mul_(2.0).add_(0.1)
        self.policy.weights_changed()
        counted = self.policy.version
        after = self._act()
        mask = self.batch.loss_mask[:, self.batch.first :]
        with torch.no_grad():
            moved = self.policy.read(self.batch).logprobs[mask]
            for parameter, value in zip(self.policy.parameters(), saved, strict=True):
                parameter.copy_(value)
            self.policy.weights_changed()
            back = self.policy.read(self.batch).logprobs[mask]
        self.policy.version = version
        _require(
            counted == version + 1,
            "weights_changed() adds 1 to version",
            f"{version}, then {counted}",
            "Trajectories note the version of each token",
        )
        changed = not np.allclose(before, after.logprobs, atol=self.tolerance) or not torch.allclose(moved, back)
        _require(
            changed,
            "other actions after other weights",
            "the same log-probabilities",
            "weights_changed() must drop caches computed with the old weights",
        )

    def _same(self, one: Any, other: Any, expected: str, hint: str) -> None:
        gap = float(np.abs(np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)).max())
        _require(gap < self.tolerance, expected, f"log-probabilities that differ by up to {gap:.3g}", hint)
