"""The simulated device: it refuses what GPUs refuse, allows what they allow, and computes what the CPU computes."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.simulated_device import SimulatedTensor, simulated_device  # noqa: E402 - after the check whether torch is there

HERE = torch.ones(3)


@pytest.fixture
def there() -> Iterator[Any]:
    """Three numbers on the device."""
    with simulated_device():
        yield torch.arange(3.0, device="cuda")


REFUSED: dict[str, Callable[[Any], Any]] = {
    "addition": lambda there: there + HERE,
    "addition the other way": lambda there: HERE + there,
    "in place": lambda there: HERE.clone().add_(there),
    "a number on the device": lambda there: HERE * there.sum(),
    "concatenation": lambda there: torch.cat([there, HERE]),
    "stacking": lambda there: torch.stack([HERE, there]),
    "where": lambda there: torch.where(HERE > 0, there, 0.0),
    "a mask": lambda there: there.masked_fill(HERE > 0, 0.0),
    "a product": lambda there: torch.outer(there, HERE),
    "gather": lambda there: there.gather(0, torch.zeros(2, dtype=torch.int64)),
    "a layer": lambda there: torch.nn.Linear(3, 2)(there),
    "an embedding": lambda there: torch.nn.Embedding(4, 2)(there.long()),
    "an index of the device into the CPU": lambda there: HERE[there.long()],
    "assignment of the device into the CPU": lambda there: HERE.clone().__setitem__(there > 0, 1.0),
    "assigned values of the CPU": lambda there: there.__setitem__(torch.tensor([0, 1, 2]), HERE),
    "searchsorted": lambda there: torch.searchsorted(there, HERE),
    "a new tensor of the CPU": lambda there: there + there.new_zeros(3, device="cpu"),
    "a loss": lambda there: torch.nn.functional.mse_loss(there, HERE),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_operation_on_two_devices_is_refused(there: Any, case: str) -> None:
    with pytest.raises(RuntimeError, match="on the same device"):
        REFUSED[case](there)


def test_numpy_is_refused_as_by_a_gpu(there: Any) -> None:
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        there.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        there.__array__()


ALLOWED: dict[str, Callable[[Any], Any]] = {
    "a plain number": lambda x: x + 1,
    "a number in a tensor of the CPU": lambda x: x * torch.tensor(2.0),
    "an index of the CPU": lambda x: x[torch.tensor([2, 0])],
    "a mask of the CPU as an index": lambda x: x[torch.tensor([True, False, True])],
    "assignment by an index of the CPU": lambda x: x.clone().index_put_((torch.tensor([1]),), torch.tensor(9.0)),
    "a slice": lambda x: x[None, 1:].expand(2, -1),
    "reductions": lambda x: x.softmax(0).cumsum(0) / x.sum(),
    "factories": lambda x: (
        torch.zeros(3, device=x.device) + torch.full((3,), 2.0, device=x.device) + torch.ones_like(x)
    ),
    "new tensors": lambda x: x.new_zeros(3) + x.new_tensor([1.0, 2.0, 3.0]),
    "lists": lambda x: torch.tensor([1.0, 2.0, 3.0], device=x.device) * x,
    "a copy to the CPU and back": lambda x: x.cpu().to(x.device) + x,
    "copying in place": lambda x: torch.zeros(3).copy_(x).to(x) + torch.zeros_like(x).copy_(HERE),
    "another type": lambda x: x.to(torch.int64) + x.long(),
    "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(*(x.view(1, 1, 3, 1),) * 3, is_causal=True),
    "sorting": lambda x: x.sort(descending=True).values + x.topk(2).values[0],
    "random numbers": lambda x: torch.rand(
        3, device=x.device, generator=torch.Generator(device=x.device).manual_seed(1)
    ),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_is_allowed_gives_the_numbers_of_the_cpu(there: Any, case: str) -> None:
    result = ALLOWED[case](there)
    assert isinstance(result, SimulatedTensor)
    assert result.device == torch.device("cuda", 0)
    assert torch.equal(result.cpu(), ALLOWED[case](torch.arange(3.0)))


def test_what_a_tensor_says_of_itself(there: Any) -> None:
    assert (str(there.device), there.is_cuda, there.is_cpu, there.get_device()) == ("cuda:0", True, False, 0)
    assert type(there.cpu()) is torch.Tensor
    assert there.cpu().numpy().tolist() == there.tolist() == [0.0, 1.0, 2.0]
    assert (there[2].item(), float(there[1]), bool(there[0]), len(there)) == (2.0, 1.0, False, 3)
    assert there.to("cuda") is there
    assert there.to("cuda", copy=True) is not there
    assert copy.deepcopy(there).device == there.device
    assert (torch.cuda.is_available(), torch.cuda.device_count()) == (True, 1)


def test_nothing_of_it_is_left_behind() -> None:
    before = torch.cuda.is_available()
    with simulated_device():
        pass
    assert torch.cuda.is_available() is before
    assert type(torch.ones(2) + 1) is torch.Tensor


def small_net() -> Any:
    """Two layers with the same weights."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 3))
    net[2].weight = net[0].weight
    return net


def test_gradients_and_steps_are_those_of_the_cpu_bit_for_bit(there: Any) -> None:
    results: list[Any] = []
    for device in ("cpu", "cuda"):
        net, inputs = small_net().to(device), torch.arange(3.0, device=device)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, foreach=False)
        versions = [weight._version for weight in net.parameters()]
        for _ in range(2):
            optimizer.zero_grad()
            net(inputs).to("cpu").pow(2).sum().backward()  # gradients come back from the CPU
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
        assert net[0].weight is net[2].weight, "tied weights stay tied"
        assert all(weight._version > before for weight, before in zip(net.parameters(), versions, strict=True))
        assert all(weight.grad.device.type == device for weight in net.parameters())
        results.append([norm.cpu(), *(weight.detach().cpu() for weight in net.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_weights_are_stored_as_those_of_the_cpu(there: Any) -> None:
    net = small_net().to("cuda")
    buffer = io.BytesIO()
    torch.save(net.state_dict(), buffer)
    buffer.seek(0)
    saved = torch.load(buffer, map_location="cpu", weights_only=True)
    assert type(saved["0.weight"]) is torch.Tensor
    other = small_net().to("cuda")
    other.load_state_dict(saved)
    assert torch.equal(other[0].weight, net[0].weight)


def test_mps_has_no_float64() -> None:
    with simulated_device("mps"):
        numbers = torch.ones(2, device="mps")
        assert numbers.is_mps
        for make in (
            lambda: numbers.double(),
            lambda: torch.zeros(2, device="mps", dtype=torch.float64),
            lambda: torch.zeros(2, dtype=torch.float64).to("mps"),
            lambda: numbers.sum(dtype=torch.float64),
        ):
            with pytest.raises(TypeError, match="doesn't support float64"):
                make()
        assert numbers.cpu().double().dtype is torch.float64
