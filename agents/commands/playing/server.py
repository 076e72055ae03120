"""A model behind an API as the player of an episode; the episode is shown turn by turn."""

from __future__ import annotations

from functools import partial

from rich.console import Console

import rlvr_envs
from agents.commands.sections import messages_text, print_section, verdict_text
from agents.console.counting import counted
from agents.rollouts.endpoint.client import Endpoint
from agents.rollouts.endpoint.sampling import Conversation, message_env, sample_endpoint
from agents.runs.evaluation_record import sample_line
from agents.runs.files.json_files import plain
from verifiers import dialogue_of


class ShownConversation(Conversation):
    """A conversation whose turns are printed as they are taken, each with its answer."""

    def __init__(self, env: rlvr_envs.MessageEnv, problem: int, seed: int, *, console: Console) -> None:
        super().__init__(env, problem, seed)
        self._console = console
        self._shown = 0

    def take(self, answer: rlvr_envs.TextCompletion) -> None:
        """Take a turn of the model, answer it, and print both."""
        super().take(answer)
        said = plain(list(dialogue_of(self.episode.completion)))
        turn = sum(message["role"] == "assistant" for message in said)
        end = ", truncated" if self.episode.truncated else ""
        title = f"turn {turn}, {counted(answer.tokens, 'token')}{end}"
        print_section(self._console, title, messages_text(said[self._shown :]))
        self._shown = len(said)


def play_by_server(streams: rlvr_envs.TokenStreams, endpoint: Endpoint, index: int, seed: int, console: Console) -> int:
    """Play an episode, and print each turn and the verdict.

    Returns:
        The exit code: 1 if a request failed after all retries.
    """
    env = message_env(streams, endpoint.config)
    problem = streams.dataset[index]
    tools = ", ".join(tool["function"]["name"] for tool in env.tools)
    title = f"prompt, with the tools {tools}" if tools else "prompt"
    print_section(console, title, messages_text(plain(env.start(problem).prompt)))
    show = partial(ShownConversation, console=console)
    (played,) = (row for row in sample_endpoint(env, endpoint, [(index, 0)], [seed], show))
    sample = played.sample
    prompts = "" if sample.prompt_tokens is None else f", after {sample.prompt_tokens} of prompts"
    line = plain(sample_line(sample, played.completion, played.verdict, problem))
    print_section(console, f"verdict on {counted(sample.tokens, 'token')}{prompts}", verdict_text(line))
    return int(sample.unanswered)
