"""This package's extension of vLLM's workers (`worker_extension_cls`); only these workers import it.

vLLM mixes the class into its own worker, whose `vllm_config`, `get_model` and `model_runner` it uses. Weights are replaced by
the steps of vLLM's own `reload_weights`, which takes all of them in one call.
"""

from __future__ import annotations

from typing import Any

EXTENSION = f"{__name__}.WeightLoader"
"""The class's name for vLLM's `worker_extension_cls`."""


class WeightLoader:
    """Loads new weights from files, and reports the weights' shapes and the limits of a request."""

    vllm_config: Any
    get_model: Any
    model_runner: Any
    _arrived: set[str] | None = None
    """Names of the weights that have arrived in the current replacement; None outside of a replacement."""
    _mark: str | None = None
    """Identifies the weights; None if they are those of the start, or were replaced since."""

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

        vLLM's second model runner, used on GPUs, stores these tokens in tables of a fixed width. The result is a dictionary,
        since a server would convert a number to text.
        """
        if not self.vllm_config.use_v2_model_runner:
            return {}
        from vllm.v1.worker.gpu.sample.logit_bias import MAX_NUM_ALLOWED_TOKEN_IDS, MAX_NUM_LOGIT_BIAS_TOKENS

        return {"named_tokens": min(MAX_NUM_ALLOWED_TOKEN_IDS, MAX_NUM_LOGIT_BIAS_TOKENS)}

    def begin_weights(self) -> None:
        """Begin to replace the weights, which then arrive in any number of files."""
        from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

        if self._arrived is not None:  # a learner broke off an earlier replacement
            self._finalize()
        self._arrived, self._mark = set(), None
        with self._configured():
            initialize_layerwise_reload(self.get_model())

    def load_shared_weights(self, path: str) -> None:
        """Load some of the weights, whole layers of them, from a safetensors file with the checkpoint's names and shapes."""
        from safetensors import safe_open

        assert self._arrived is not None, "begin_weights comes first"
        with self._configured(), safe_open(path, framework="pt", device="cpu") as file:
            names = list(file.keys())
            self.get_model().load_weights((name, file.get_tensor(name)) for name in names)
            self._arrived.update(names)

    def finish_weights(self) -> None:
        """Put the new weights to use.

        Raises:
            RuntimeError: If weights of the checkpoint have not arrived.
        """
        assert self._arrived is not None, "begin_weights comes first"
        missing = sorted(self.checkpoint_shapes().keys() - self._arrived)
        self._finalize()
        if missing:
            raise RuntimeError(f"{len(missing)} weights have not arrived, such as {missing[0]}: send all of them again")

    def mark_weights(self, mark: str) -> None:
        """Keep a name for the present weights, until they are replaced."""
        self._mark = mark

    def weights_mark(self) -> str | None:
        """The name that the present weights were given."""
        return self._mark

    def _finalize(self) -> None:
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

        self._arrived = None
        with self._configured():
            finalize_layerwise_reload(self.get_model(), self.vllm_config.model_config)
        # `reload_weights` of the runner drops these as well.
        self.model_runner.reset_lora_state()
        self.model_runner.reset_encoder_cache()
        self.model_runner.reset_mm_cache()
        self._process_heads()

    def _configured(self) -> Any:
        from vllm.config import set_current_vllm_config

        return set_current_vllm_config(self.vllm_config)

    def _process_heads(self) -> None:
        """Repack the weights of output layers.

        On a CPU output layers compute with a packed copy, which a reload in vLLM 0.32 does not update for a layer that is tied
        to the embedding, since the checkpoint has no weight under its name.
        """
        from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod

        for module in self.get_model().modules():
            method = getattr(module, "quant_method", None)
            if isinstance(method, UnquantizedEmbeddingMethod):
                method.process_weights_after_loading(module)
