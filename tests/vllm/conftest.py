"""One engine for all tests, since it takes most of a minute to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

ENGINE_ARGS = {
    "enforce_eager": True,
    "max_model_len": 64,
    "block_size": 32,
    "max_num_batched_tokens": 64,  # fewer than the prompts of most tests have together
    "max_num_seqs": 64,
}
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums split over threads round differently; one thread also suits models this small."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    """VLLM with the model of `learner()`; its weights are those of whichever policy synced last."""
    from agents import VLLMConfig, VLLMPolicy
    from tests.vllm.worlds import TOKENIZER, learner

    config = VLLMConfig(engine_args=ENGINE_ARGS, environment=ENVIRONMENT)
    with VLLMPolicy(learner(), config, stop_tokens=[TOKENIZER.eos_token]) as sampler:
        yield sampler.engine
