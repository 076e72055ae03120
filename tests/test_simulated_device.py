"""The simulated device: it refuses what GPUs refuse, allows what they allow, and computes what the CPU computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.simulated_device import simulated_device  # noqa: E402 - after the check whether torch is there

HERE = torch.ones(3)


@pytest.fixture
def there() -> Iterator[Any]:
    """Three numbers on the device."""
    with simulated_device():
        yield torch.arange(3.0, device="cuda")


REFUSED: dict[str, Callable[[Any], Any]] = {
    "addition": lambda there: there + HERE,
    "in place": lambda there: HERE.clone().add_(there),
    "a number on the device": lambda there: HERE * there.sum(),
    "concatenation": lambda there: torch.cat([there, HERE]),
    "a layer": lambda there: torch.nn.Linear(3, 2)(there),
    "an index of the device into the CPU": lambda there: HERE[there.long()],
    "assigned values of the CPU": lambda there: there.__setitem__(torch.tensor([0, 1, 2]), HERE),
    "a new tensor of the CPU": lambda there: there + there.new_zeros(3, device="cpu"),
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
