# SPDX-License-Identifier: Apache-2.0
"""The part of PyTorch that tools/torch_reference calls, without computing.

Every operation advances the clock of a GPU with known rates, so that tests know
what the script must find. FAKE_TORCH selects what goes wrong: "missing", "no
gpu", or the name of an operation that fails.
"""
import os

BROKEN = os.environ.get("FAKE_TORCH", "")
if BROKEN == "missing":
    raise ImportError("No module named 'torch' (fake)")

__version__ = "2.11.0+fake"
bfloat16 = "bfloat16"

LAUNCH = 2e-6
COPY_RATE = 3e12  # bytes read and written per second
GEMM_RATE = 700e12
# Of the bf16 peak of an H100, as in the profile h100-sxm.
PEAK = 989.4e12
ATTENTION = {"forward": 0.62, "backward": 0.51}
RAMP_KEYS = 250


class Device:
    now = 0.0
    capturing = None  # seconds of the graph that is captured


def run(operation, seconds):
    if operation == BROKEN:
        raise RuntimeError(f"{operation} is broken\nsecond line")
    if Device.capturing is None:
        Device.now += seconds
    else:
        Device.capturing += seconds


class Tensor:
    def __init__(self, shape):
        self.shape = tuple(shape)
        self.bytes = 2
        for size in self.shape:
            self.bytes *= size

    def copy_(self, other):
        assert other.shape == self.shape
        run("copy", LAUNCH + 2 * self.bytes / COPY_RATE)

    def add_(self, _):
        run("add", LAUNCH)

    def __matmul__(self, other):
        return mm(self, other)


def randn(shape, device, dtype, requires_grad=False):
    assert device == "cuda" and dtype == bfloat16 and requires_grad in (0, 1)
    return Tensor(shape)


def randn_like(tensor):
    return Tensor(tensor.shape)


empty_like = randn_like


def mm(a, b, out=None):
    (m, k), (rows, n) = a.shape, b.shape
    assert rows == k and (out is None or out.shape == (m, n))
    run("mm", LAUNCH + 2 * m * n * k / GEMM_RATE)
    return out or Tensor((m, n))


def attention_seconds(shape, direction):
    batch, heads, length, size = shape
    gemms = {"forward": 2, "backward": 5}[direction]
    flops = gemms * 2 * batch * heads * length * size * (length / 2 + RAMP_KEYS)
    return LAUNCH + flops / (PEAK * ATTENTION[direction])


class version:
    cuda = "13.0"


class backends:
    class cudnn:
        @staticmethod
        def version():
            return 91900


class autograd:
    @staticmethod
    def grad(output, inputs, gradient, retain_graph):
        assert retain_graph and gradient.shape == output.shape
        run("grad", attention_seconds(output.shape, "backward"))
        return inputs


from . import cuda, nn  # noqa: E402,F401
