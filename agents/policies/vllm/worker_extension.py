"""This package's extension of vLLM's workers (`worker_extension_cls`); it is only imported there.

vLLM mixes the class into its own worker, whose `reload_weights`, `vllm_config` and `get_model` it uses.
"""

from __future__ import annotations

from typing import Any

EXTENSION = f"{__name__}.WeightLoader"
"""The class's name for vLLM's `worker_extension_cls`."""


class WeightLoader:
    """Loads new weights from a file, and reports the weights' shapes and the limits of a request."""

    vllm_config: Any
    get_model: Any
    reload_weights: Any

    def checkpoint_shapes(self) -> dict[str, list[int]]:
        """The name and shape of each weight in the checkpoint that the engine was started with.

        The model's own parameters are different, since vLLM fuses some of them. The checkpoint is only read the first time,
        and may be deleted afterwards.
        """
        if not hasattr(self, "_checkpoint_shapes"):
            from vllm.model_executor.model_loader import get_model_loader

            loader = get_model_loader(self.vllm_config.load_config)
            weights = loader.get_all_weights(self.vllm_config.model_config, self.get_model())
            self._checkpoint_shapes = {name: list(weight.shape) for name, weight in weights}
        return self._checkpoint_shapes

    def request_limits(self) -> dict[str, int]:
        """Limits of a request, beyond which the worker crashes: `named_tokens`, the number of allowed or biased tokens.

        vLLM's second model runner, used on GPUs, stores them in tables of a fixed width. The result is a dictionary, since a
        server would convert a number to text.
        """
        if not self.vllm_config.use_v2_model_runner:
            return {}
        from vllm.v1.worker.gpu.sample.logit_bias import MAX_NUM_ALLOWED_TOKEN_IDS, MAX_NUM_LOGIT_BIAS_TOKENS

        return {"named_tokens": min(MAX_NUM_ALLOWED_TOKEN_IDS, MAX_NUM_LOGIT_BIAS_TOKENS)}

    def load_shared_weights(self, path: str) -> None:
        """Replace the weights by those of a safetensors file with the checkpoint's names and shapes."""
        from safetensors import safe_open

        with safe_open(path, framework="pt", device="cpu") as file:
            self.reload_weights(weights_iterator=((name, file.get_tensor(name)) for name in file.keys()))  # noqa: SIM118
        self._process_heads()

    def _process_heads(self) -> None:
        """Repack the weights of output layers.

        On CPU they compute with a packed copy, which a reload in vLLM 0.32 does not update for a layer that is tied to the
        embedding, since the checkpoint has no weight under its name.
        """
        from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod

        for module in self.get_model().modules():
            method = getattr(module, "quant_method", None)
            if isinstance(method, UnquantizedEmbeddingMethod):
                method.process_weights_after_loading(module)
