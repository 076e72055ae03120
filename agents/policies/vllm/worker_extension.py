"""What this package adds to each worker of vLLM (`worker_extension_cls`); it is only imported there.

vLLM mixes the class into its own worker, whose `reload_weights`, `vllm_config` and `get_model` it uses.
"""

from __future__ import annotations

from typing import Any

EXTENSION = f"{__name__}.WeightLoader"
"""The class's name for vLLM's `worker_extension_cls`."""


class WeightLoader:
    """Takes new weights from a file, and says which weights there are and what the worker takes of a request."""

    vllm_config: Any
    get_model: Any
    reload_weights: Any

    def checkpoint_shapes(self) -> dict[str, list[int]]:
        """The name and shape of each weight in the checkpoint that the engine was started with.

        The model's own parameters would not do: vLLM fuses some of them. The checkpoint is only looked at the first time, and
        may be gone afterwards.
        """
        if not hasattr(self, "_checkpoint_shapes"):
            from vllm.model_executor.model_loader import get_model_loader

            loader = get_model_loader(self.vllm_config.load_config)
            weights = loader.get_all_weights(self.vllm_config.model_config, self.get_model())
            self._checkpoint_shapes = {name: list(weight.shape) for name, weight in weights}
        return self._checkpoint_shapes

    def request_limits(self) -> dict[str, int]:
        """What the worker takes of a request at most; it dies of more. `named_tokens`: allowed or biased tokens.

        vLLM's second model runner, which GPUs have, keeps them in tables of a fixed width. A dictionary, since a server makes
        text of a number.
        """
        if not self.vllm_config.use_v2_model_runner:
            return {}
        from vllm.v1.worker.gpu.sample.logit_bias import MAX_NUM_ALLOWED_TOKEN_IDS, MAX_NUM_LOGIT_BIAS_TOKENS

        return {"named_tokens": min(MAX_NUM_ALLOWED_TOKEN_IDS, MAX_NUM_LOGIT_BIAS_TOKENS)}

    def load_shared_weights(self, path: str) -> None:
        """Replace the weights by those of a safetensors file in the checkpoint's names and shapes."""
        from safetensors import safe_open

        with safe_open(path, framework="pt", device="cpu") as file:
            self.reload_weights(weights_iterator=((name, file.get_tensor(name)) for name in file.keys()))  # noqa: SIM118
        self._process_heads()

    def _process_heads(self) -> None:
        """Pack output layers anew.

        On CPU each computes with a packed copy of its weight, and the reload of vLLM 0.32 leaves one that is tied to the
        embedding with its old copy, since the checkpoint has no weight under its name.
        """
        from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod

        for module in self.get_model().modules():
            method = getattr(module, "quant_method", None)
            if isinstance(method, UnquantizedEmbeddingMethod):
                method.process_weights_after_loading(module)
