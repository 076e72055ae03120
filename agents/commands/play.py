"""The command `rlvr play`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import gymnasium
import numpy as np
from gymnasium.spaces.utils import flatten
from rich.console import Console

import rlvr_envs
from agents.commands.before_loading import check_policy, check_reward_model
from agents.commands.common import (
    DEVICE,
    PROMPT,
    Device,
    check_is_saved,
    endpoint_config,
    env_arguments,
    env_for_endpoint,
    on_device,
    say_stops,
    shown_warnings,
    verifier_arguments,
    verifier_spec,
    with_options,
)
from agents.commands.playing.numbers import Chooser, person, play_numbers, top_values
from agents.commands.playing.person import TextPlayer, TokenPlayer
from agents.commands.saved_agents import SavedAgent, check_table_temperature, make_plain, vectorized
from agents.commands.sections import print_section, verdict_text
from agents.console.counting import counted
from agents.policies.transformers.model_files import check_model, model_folder
from agents.rollouts import endpoint
from agents.rollouts.played_episode import PlayedEpisode, Player, play_episode
from agents.runs.evaluation_record import Sample, sample_line
from agents.runs.files.json_files import plain
from verifiers import AtLeast, InvalidArgumentError

_ME = "me"
_WORDS = 256
"""Maximum number of tokens in a turn of a model that plays a text game."""


@dataclass(frozen=True)
class Play:
    """Step through one episode of an environment, by typing or with a model, and see its verdict.

    Without --model you play: type the completion, and end it with the end of input (Ctrl-D). With --tokens, or if the
    environment restricts the legal tokens, each line is tokenised by itself: type text, #ID for the token with that number, or
    nothing for the end token. If there are no tokens, as in CartPole-v1, each line is the number of an action.
    """

    env: str
    """Environment, such as Addition, rlvr/GSM8K-v0, or your own, such as my_envs:MyEnv."""
    model: str | None = None
    """Folder, GGUF file or Hugging Face name of the model that plays; the run's folder of a table or a multilayer perceptron;
    or, with the engine openai, the model's name on the server. By default you play on standard input."""
    engine: Literal["torch", "openai"] = "torch"
    """Engine used for sampling: torch, or openai, a server at --base-url with OpenAI's protocol."""
    base_url: str | None = None
    """Address of the server's API, for the engine openai, such as http://localhost:8000/v1."""
    engine_args: tuple[str, ...] = ()
    """Settings of EndpointConfig, for the engine openai, each as name=value, such as api_key=env:OPENAI_API_KEY."""
    problem: Annotated[int | None, AtLeast(0)] = None
    """Index of the problem in the data set; by default a problem is drawn with --seed."""
    split: str = "test"
    """Split of the data set to take the problem from."""
    tokens: bool = False
    """Type tokens line by line instead of the whole text of a turn."""
    top: Annotated[int, AtLeast(0)] = 5
    """Number of most probable tokens, or of actions with the highest values, to show beside each chosen token or action; 0
    shows none."""
    temperature: Annotated[float, AtLeast(0)] = 1.0
    """Sampling temperature of the model; 0 chooses the likeliest token, and then shows the probabilities at temperature 1. A
    table explores at temperature 1 as in training; action values of dqn are always played greedily."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed for drawing the problem and for sampling; with --problem and the same model, the seed of a recorded sample repeats
    that sample, up to rounding."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as max_new_tokens=64 or prompt=boxed_chat."""
    opponent: str | None = None
    """Player of the environment's side in an episode of several turns: "me" to type its turns line by line, or, for a game of
    two sides, the folder or Hugging Face name of a model; by default the environment itself."""
    verifier: str | None = None
    """Verifier to use in place of the environment's own: a verifier's name, or rewards.py:function."""
    verifier_args: tuple[str, ...] = ()
    """Arguments of the verifier, each as name=value."""
    reward_model: str | None = None
    """Folder or Hugging Face name of a reward model to use as the verifier."""
    device: Device = DEVICE

    def __post_init__(self) -> None:
        if self.seed >= 2**64:
            raise InvalidArgumentError(f"--seed must be less than 2**64, got {self.seed}")
        if (self.engine == "openai") != (self.base_url is not None):
            raise InvalidArgumentError("--base-url and --engine openai come together: give both or neither")
        if self.engine == "openai" and self.model is None:
            raise InvalidArgumentError("--engine openai needs the name of the server's model: give --model")
        if self.engine_args and self.engine != "openai":
            raise InvalidArgumentError("--engine-args is for --engine openai: leave it out")
        if self.model is not None:
            if self.engine != "openai":
                check_is_saved(self.model)
            if self.tokens:
                raise InvalidArgumentError("--tokens is for a person who types: leave it out with --model")
        if self.opponent not in (None, _ME):
            check_is_saved(self.opponent)

    @on_device
    def run(self, console: Console) -> int:
        """Play the episode, and print each part of it as it happens."""
        local = None if self.engine == "openai" else self.model
        saved = None if local is None else SavedAgent.find(local)
        if saved is not None or (self.model is None and not _has_tokens(self.env)):
            with shown_warnings():
                self._play_numbers(saved, console)
            return 0
        spec = verifier_spec(self.verifier, self.verifier_args, self.reward_model)
        judged_by = {} if spec is None else {"verifier": spec}
        given = with_options(judged_by, env_arguments(self.env_args))
        own = with_options({"split": self.split}, given)
        arguments = {**PROMPT, **own}
        check_reward_model(self.reward_model, verifier_arguments(self.verifier_args))
        with shown_warnings():
            if local is not None:
                rlvr_envs.environment_class(self.env)
                check_policy(local, self.env, given, {"split": self.split})
            policy = None if local is None else self._load_policy(local, arguments)
            server = self._endpoint()

            def make(**more: Any) -> rlvr_envs.TaskEnv:
                cls = rlvr_envs.environment_class(self.env)
                if server is None:
                    return cls(**arguments, **more)
                return env_for_endpoint(lambda options: cls(**options), server.config, {**own, **more})

            env = make()
            if policy is not None:
                say_stops(console, env)
            if self.opponent is not None:
                other = self._other_side(env, self.opponent, console)
                env.close()
                env = make(interaction=other)
            try:
                return self._play(env, policy or server, console)
            finally:
                env.close()

    def _endpoint(self) -> endpoint.Endpoint | None:
        """The server that plays; None without --base-url."""
        if self.base_url is None:
            return None
        config = endpoint_config({"base_url": self.base_url, "model": self.model, "concurrency": 1}, self.engine_args)
        return endpoint.Endpoint(config, temperature=self.temperature)

    def _play_numbers(self, saved: SavedAgent | None, console: Console) -> None:
        """Let a table, a perceptron or a person play an environment whose observations are numbers."""
        for option in ("tokens", "opponent", "verifier", "reward_model"):
            if getattr(self, option):
                raise InvalidArgumentError(
                    f"--{option.replace('_', '-')} is for environments with tokens: leave it out"
                )
        name = rlvr_envs.environment_id(self.env)
        env = make_plain(name, self.split, env_arguments(self.env_args))
        try:
            choose = person(env, console) if saved is None else self._chooser(saved, env)
            play_numbers(env, choose, console, seed=self.seed, problem=self.problem)
        finally:
            env.close()

    def _chooser(self, saved: SavedAgent, env: gymnasium.Env[Any, Any]) -> Chooser:
        """Make a function that chooses actions with a table or a perceptron."""
        if saved.is_table:
            check_table_temperature(self.temperature)
            agent, rng, greedy = saved.load_table(env), np.random.default_rng(self.seed), self.temperature == 0

            def by_table(state: Any) -> tuple[int, str]:
                action = agent.greedy_action(int(state)) if greedy else agent.choose(int(state), rng)
                return action, top_values(env, agent.acting_values(int(state)), self.top, "values")

            return by_table
        temperature = 0.0 if saved.has_values else self.temperature
        policy = saved.load_perceptron(vectorized([lambda: env]), temperature=temperature, seed=self.seed)
        policy.begin(np.array([0]), np.array([self.seed], dtype=np.uint64))
        steps = itertools.count(1)

        def by_perceptron(observation: Any) -> tuple[int, str]:
            shown: dict[str, Any] = {
                "tokens": np.zeros((1, 1), dtype=np.int32),
                "length": np.array([[next(steps)]], dtype=np.int32),
                "observation": np.asarray(flatten(env.observation_space, observation), dtype=np.float32)[None],
            }
            values = policy.preferences(shown)
            name = "values" if saved.has_values else "probabilities" if temperature else "logits"
            return int(policy.act(shown).tokens[0, 0]), top_values(env, values, self.top, name)

        return by_perceptron

    def _load_policy(self, model: str, arguments: dict[str, Any]) -> Any:
        """Load the model, and set its tokenizer for the environment."""
        from agents.policies.transformers.config import PolicyConfig
        from agents.policies.transformers.loading import load_policy

        policy, arguments["tokenizer"] = load_policy(
            model,
            PolicyConfig(temperature=self.temperature, seed=self.seed),
            tokenizer=arguments.get("tokenizer"),
        )
        return policy

    def _other_side(self, env: rlvr_envs.TaskEnv, opponent: str, console: Console) -> rlvr_envs.Interaction:
        """The interaction that answers in place of the environment's own interaction."""
        from agents.commands.playing.other_side import require_two_sides, typed_side

        interaction = env.streams.rules.interaction
        if opponent == _ME:
            return typed_side(interaction, console)
        require_two_sides(interaction)
        check_model(model_folder(opponent))
        from agents.policies.transformers.config import PolicyConfig
        from agents.policies.transformers.loading import load_policy
        from agents.self_play import PolicyOpponent
        from rlvr_envs.games import TwoSidedInteraction
        from rlvr_envs.text_games import TextGameInteraction

        config = PolicyConfig(temperature=self.temperature)
        policy, tokenizer = load_policy(opponent, config, tokenizer=env.tokenizer)
        if isinstance(interaction, TextGameInteraction):
            render = env.streams.rules.render_prompt
            assert isinstance(render, rlvr_envs.PromptRenderer)
            words = PolicyOpponent(policy, tokenizer, max_move_tokens=_WORDS, prompt=render.prompt)
            return TextGameInteraction(words, forfeits="scored")
        return TwoSidedInteraction(PolicyOpponent(policy, tokenizer))

    def _play(self, env: rlvr_envs.TaskEnv, policy: Any, console: Console) -> int:
        """Play an episode, and return the exit code."""
        problem_index = -1 if self.problem is None else self.problem
        observation, info = env.reset(seed=self.seed, options={"problem": problem_index})
        problem, rules = env.streams.problem(0), env.streams.rules
        assert problem is not None
        facts = f"problem {info['problem_index']}, seed {self.seed}, at most {rules.max_new_tokens} tokens"
        print_section(console, f"{rlvr_envs.environment_id(self.env)}, {problem.id}", facts)
        if endpoint.is_endpoint(policy):
            from agents.commands.playing.server import play_by_server

            return play_by_server(env.streams, policy, info["problem_index"], self.seed, console)
        print_section(console, "prompt", env.streams.prompt_text(problem))
        player = self._player(env, policy, limited="action_mask" in info, console=console)
        played = play_episode(env, player, observation, info, lambda text: print_section(console, "environment", text))
        if played.left:
            console.print(f"you left after {counted(played.tokens, 'token')}, before the end: there is no verdict")
            return 0
        tokens = counted(played.tokens, "token")
        if played.turns > 1:  # earlier turns were shown as they were played
            what, tokens = "last turn", f"{tokens} in {played.turns} turns"
        else:
            what = "completion"
        ending = f"truncated after {tokens}" if played.truncated else tokens
        print_section(console, f"{what}, {ending}", played.completion)
        row = _row(played, info["problem_index"], self.seed, problem)
        print_section(console, "verdict", verdict_text(row))
        return 0

    def _player(self, env: rlvr_envs.TaskEnv, policy: Any, *, limited: bool, console: Console) -> Player:
        if policy is None:
            return TokenPlayer(env, console) if limited or self.tokens else TextPlayer(env, console)
        from agents.commands.playing.model import ModelPlayer

        if self.top:
            print_section(console, f"tokens, with probabilities, and the {self.top} most probable", "")
        return ModelPlayer(policy, env.tokenizer, console, top=self.top, seed=self.seed)


def _has_tokens(name: str) -> bool:
    """Whether an environment's observations are tokens."""
    environment: Any = rlvr_envs.find_environment(name)
    return isinstance(environment, type) and issubclass(environment, rlvr_envs.TaskEnv)


def _row(played: PlayedEpisode, index: int, seed: int, problem: Any) -> dict[str, Any]:
    """The episode as a line of an evaluation's record."""
    sample = Sample.judged(
        played.verdict,
        problem=index,
        problem_id=problem.id,
        sample=0,
        score=played.score,
        seed=seed,
        tokens=played.tokens,
        truncated=played.truncated,
    )
    row: dict[str, Any] = plain(sample_line(sample, played.completion, played.verdict, problem))
    return row
