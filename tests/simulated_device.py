"""A GPU that is not there, for tests: tensors that say `cuda`, hold values of the CPU, and refuse what tensors of a GPU refuse.

`simulated_device` is a context in which unmodified code may ask for the device, as in `model.to("cuda")` and
`torch.zeros(3, device="cuda")`. Operations compute on the CPU's values, with the CPU's kernels, so that numbers are those of
the CPU, bit for bit. An operation between a tensor of the device and one that stayed on the CPU raises, as do `numpy()` and an
index from the device into a tensor of the CPU. What real devices allow is allowed: tensors without dimensions, copies, and
indices of the CPU into a tensor of the device.

It shows where tensors are. It does not show what kernels of a GPU compute, or which operations a device lacks: except that
`mps` has no float64, which is simulated too.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

_INDEXING = ("aten::index", "aten::_unsafe_index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")
_COPIES = ("aten::copy_", "aten::_to_copy")
_MEMORY = 2**33


class SimulatedTensor(torch.Tensor):
    """A tensor of the device. To torch's own code it is one of the CPU without memory; only Python sees the device.

    (A tensor whose device torch itself takes for `cuda` can't have a gradient where torch was built without it.)
    """

    values: torch.Tensor
    """The values, a plain tensor of the CPU."""
    place: torch.device
    """What `device` says."""
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, values: torch.Tensor, place: torch.device) -> SimulatedTensor:
        refuse_float64(values.dtype, place)
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined, no-any-return]
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            layout=values.layout,
            requires_grad=values.requires_grad,
        )

    def __init__(self, values: torch.Tensor, place: torch.device) -> None:
        self.values, self.place = values.detach(), place

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        place = _checked_place(func, args, kwargs)
        results = func(*tree_map(_plain, args), **tree_map(_plain, kwargs))
        return return_and_correct_aliasing(
            func, args, kwargs, tree_map(lambda result: on_device(result, place), results)
        )

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self.place

    is_cuda = property(lambda self: self.place.type == "cuda")  # type: ignore[assignment]
    is_xpu = property(lambda self: self.place.type == "xpu")  # type: ignore[assignment]
    is_mps = property(lambda self: self.place.type == "mps")  # type: ignore[assignment]
    is_cpu = property(lambda self: False)  # type: ignore[assignment]

    def get_device(self) -> int:
        return self.place.index or 0

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(
            f"can't convert {self.place} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def __array__(self, dtype: Any = None) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        return self.values.tolist()

    def untyped_storage(self) -> Any:
        return self.values.untyped_storage()

    def data_ptr(self) -> int:
        return self.values.data_ptr()

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"SimulatedTensor({self.values!r}, {self.place})"

    def __deepcopy__(self, memo: dict[int, Any]) -> SimulatedTensor:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        other = SimulatedTensor(self.values.clone(), self.place)
        own = {name: value for name, value in vars(self).items() if name not in ("values", "place")}
        vars(other).update(copy.deepcopy(own, memo))
        memo[id(self)] = other.requires_grad_(self.requires_grad)
        return other

    def __reduce_ex__(self, protocol: Any) -> Any:
        """As it is read back with `map_location="cpu"`."""
        return self.values.__reduce_ex__(protocol)


def refuse_float64(dtype: torch.dtype | None, place: torch.device) -> None:
    if dtype is torch.float64 and place.type == "mps":
        raise TypeError(
            "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 "
            "instead."
        )


def on_device(value: Any, place: torch.device) -> Any:
    """A plain tensor as one of the device, without copying; anything else as it is."""
    return SimulatedTensor(value, place) if type(value) is torch.Tensor else value


def _plain(value: Any) -> Any:
    return value.values if isinstance(value, SimulatedTensor) else value


def _checked_place(func: Any, args: Any, kwargs: Any) -> torch.device:
    """The device of an operation's tensors; they must not differ."""
    name, tensors = func._schema.name, _tensors((args, kwargs))
    place = next(tensor.place for tensor in tensors if isinstance(tensor, SimulatedTensor))
    if name in _COPIES:
        return place
    if name in _INDEXING:
        if not isinstance(args[0], SimulatedTensor) and _on_device(args[1]):
            raise RuntimeError(
                f"indices should be either on cpu or on the same device as the indexed tensor ({args[0].device})"
            )
        tensors = _tensors((args[0], args[2:], kwargs))
    left = [tensor for tensor in tensors if not isinstance(tensor, SimulatedTensor) and tensor.dim() > 0]
    if left:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {place} and cpu! "
            f"(when checking arguments of {name}, of which one has the shape {tuple(left[0].shape)})"
        )
    return place


def _tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]


def _on_device(values: Any) -> bool:
    return any(isinstance(value, SimulatedTensor) for value in tree_leaves(values))


class _FromDevice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: SimulatedTensor) -> torch.Tensor:
        ctx.place = tensor.place
        return tensor.values.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return on_device(gradient, ctx.place)


class _ToDevice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, place: torch.device) -> torch.Tensor:
        return SimulatedTensor(tensor.detach().clone(), place)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient.values, None


def moved(tensor: torch.Tensor, place: torch.device) -> torch.Tensor:
    """A tensor on the CPU, or on the device, itself if it is there; gradients flow back."""
    if tensor.device == place:
        return tensor
    function = _FromDevice if place.type == "cpu" else _ToDevice
    arguments = (tensor,) if place.type == "cpu" else (tensor, place)
    result: torch.Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


class _Factories(TorchDispatchMode):
    """Tensors that torch's own code creates for an operation on the device are on the device, too.

    Those without dimensions may be anywhere, and are left as they are: a backward pass also runs through parts on the CPU.
    """

    def __init__(self, device: SimulatedDevice) -> None:
        super().__init__()
        self._device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self._device.inside and not _tensors((args, kwargs)):
            return on_device(result, self._device.place) if _has_dimensions(result) else result
        return result


def _has_dimensions(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0


class SimulatedDevice(TorchFunctionMode):
    """What code may ask of the device: tensors that are made on it, and moved to it and away; see `simulated_device`.

    Args:
        name: Its type: cuda, xpu or mps.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.place = torch.device(name, 0)
        self.inside = False
        """Whether an operation on the device is running."""

    def names(self, device: Any) -> bool:
        """Whether a device, or a name or number of one, is this one."""
        if isinstance(device, int) and not isinstance(device, bool):
            return device == 0
        return device is not None and torch.device(device).type == self.place.type

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if isinstance(func, torch._ops.OpOverload):  # called by the methods `__torch_dispatch__` above
            return func(*args, **kwargs)
        if func is torch.Tensor.cpu:
            return moved(args[0], torch.device("cpu"))
        if func is getattr(torch.Tensor, self.place.type, None):
            return moved(args[0], self.place)
        if func is torch.Tensor.to:
            return self._to(args[0], args[1:], kwargs)
        place = kwargs.get("device")
        if func is torch.Tensor.new_tensor and place is None:
            place = args[0].device
        if self.names(place):
            return self._made(func, args, {**kwargs, "device": torch.device("cpu")})
        if place is not None and _on_device((args, kwargs)):  # such as new_zeros(..., device="cpu")
            args, kwargs = tree_map(_plain, (args, kwargs))
        with self._operation(_on_device((args, kwargs))):
            return func(*args, **kwargs)

    @contextlib.contextmanager
    def _operation(self, inside: bool) -> Iterator[None]:
        before, self.inside = self.inside, inside
        try:
            yield
        finally:
            self.inside = before

    def backward(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Torch's backward pass `run`, in which functions of Python are called that may ask for the device."""

        def with_device(*args: Any, **kwargs: Any) -> Any:
            with self, self._operation(True):
                return run(*args, **kwargs)

        return with_device

    def _made(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What a function makes on the device: as on the CPU, and then moved."""
        requires_grad = kwargs.pop("requires_grad", False)
        refuse_float64(kwargs.get("dtype"), self.place)
        made = on_device(func(*tree_map(_plain, args), **tree_map(_plain, kwargs)), self.place)
        return made.requires_grad_() if requires_grad else made

    def _to(self, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
        again = kwargs.pop("copy", False)
        if args and isinstance(args[0], torch.Tensor):
            place, dtype = args[0].device, args[0].dtype
        else:
            device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
            place = tensor.device if device is None else device
        place = self.place if self.names(place) else place
        dtype = dtype or tensor.dtype
        refuse_float64(dtype, place)
        if dtype is not tensor.dtype:
            tensor = torch.Tensor.to(tensor, dtype)
        result = moved(tensor, place)
        return result.clone() if again and result is tensor else result


@contextlib.contextmanager
def simulated_device(name: str = "cuda") -> Iterator[torch.device]:
    """A context in which there is one device besides the CPU.

    Args:
        name: Its type: cuda, xpu or mps.
    """
    device = SimulatedDevice(name)
    run = torch.autograd._engine_run_backward  # type: ignore[attr-defined] # imported there
    with (
        _device_module(name),
        mock.patch.object(torch, "Generator", _generator(device)),
        mock.patch.object(torch.autograd, "_engine_run_backward", device.backward(run)),
        _modules_moved_in_place(),
        _Factories(device),
        device,
    ):
        yield device.place


@contextlib.contextmanager
def _modules_moved_in_place() -> Iterator[None]:
    """Within the block, `Module.to` exchanges tensors rather than their data, which leaves tied weights tied."""
    future = torch.__future__
    before = future.get_swap_module_params_on_conversion(), future.get_overwrite_module_params_on_conversion()
    future.set_swap_module_params_on_conversion(True)
    future.set_overwrite_module_params_on_conversion(True)
    try:
        yield
    finally:
        future.set_swap_module_params_on_conversion(before[0])
        future.set_overwrite_module_params_on_conversion(before[1])


def _generator(simulated: SimulatedDevice) -> type[torch.Generator]:
    class Generator(torch.Generator):
        """Random numbers of the device are those of the CPU."""

        def __new__(cls, device: Any = "cpu") -> Generator:
            named = "cpu" if simulated.names(device) else device
            return super().__new__(cls, named)  # type: ignore[call-arg, return-value]

    return Generator


@contextlib.contextmanager
def _device_module(name: str) -> Iterator[None]:
    """Within the block, `torch.cuda` or its like says that there is one device."""
    module = torch.get_device_module(name)
    state = torch.Generator().get_state()

    def keep(new: torch.Tensor, device: Any = None) -> None:
        nonlocal state
        state = new.clone()

    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "get_device_name": lambda device=None: f"simulated {name}",
        "is_bf16_supported": lambda including_emulation=True: False,
        "mem_get_info": lambda device=None: (_MEMORY, _MEMORY),
        "memory_reserved": lambda device=None: 0,
        "memory_allocated": lambda device=None: 0,
        "recommended_max_memory": lambda: _MEMORY,
        "current_allocated_memory": lambda: 0,
        "get_rng_state": lambda device=None: state.clone(),
        "get_rng_state_all": lambda: [state.clone()],
        "set_rng_state": keep,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
    }
    with contextlib.ExitStack() as patches:
        for function, answer in answers.items():
            if hasattr(module, function):
                patches.enter_context(mock.patch.object(module, function, answer))
        if name == "mps":
            patches.enter_context(mock.patch.object(torch.backends.mps, "is_available", return_value=True))
        yield
