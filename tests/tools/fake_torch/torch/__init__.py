# SPDX-License-Identifier: Apache-2.0
"""The part of PyTorch that tools/torch_reference calls, without computing.

Every operation advances the clock of a GPU with known rates, so that tests know
what the script must find. FAKE_TORCH selects what goes wrong: "missing", "no
gpu", or the name of an operation that fails.
"""
import contextlib
import os

BROKEN = os.environ.get("FAKE_TORCH", "")
if BROKEN == "missing":
    raise ImportError("No module named 'torch' (fake)")

__version__ = "2.11.0+fake"
bfloat16, float8_e4m3fn = "bfloat16", "float8_e4m3fn"

LAUNCH = 2e-6
COPY_RATE = 3e12  # bytes read and written per second
GEMM_RATE = 700e12
FP8_RATE, GROUPED_RATE = 1300e12, 600e12
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
    def __init__(self, shape, dtype=bfloat16):
        self.shape = tuple(shape)
        self.dtype = dtype
        self.bytes = 2 if dtype == bfloat16 else 1
        for size in self.shape:
            self.bytes *= size

    def elementwise(self, *_):
        run("elementwise", LAUNCH + 2 * self.bytes / COPY_RATE)
        return Tensor(self.shape, self.dtype)

    abs = contiguous = __mul__ = __add__ = __radd__ = elementwise

    def max(self):
        return Tensor(())

    sum = max

    def backward(self):
        run("backward", LAUNCH)

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def to(self, dtype):
        return Tensor(self.shape, dtype)

    def t(self):
        return Tensor(reversed(self.shape), self.dtype)

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


def ones(shape, device):
    assert device == "cuda"
    return Tensor(shape)


class tensor:
    """Of integers: the ends of groups."""

    def __init__(self, values, device):
        assert device == "cuda"
        self.values = values

    def cumsum(self, dimension):
        assert dimension == 0
        sums = [sum(self.values[:i + 1]) for i in range(len(self.values))]
        return tensor(sums, "cuda")

    def int(self):
        return self


def _scaled_mm(a, b, of_a, of_b, out_dtype, use_fast_accum):
    (m, k), (rows, n) = a.shape, b.shape
    assert rows == k and use_fast_accum and out_dtype == bfloat16
    assert a.dtype == b.dtype == float8_e4m3fn
    assert (of_a.shape, of_b.shape) in (((), ()), ((m, 1), (1, n)))
    run("fp8", LAUNCH + 2 * m * n * k / FP8_RATE)
    return Tensor((m, n))


def _grouped_mm(a, b, offs):
    (m, k), (groups, rows, n) = a.shape, b.shape
    assert rows == k and len(offs.values) == groups and offs.values[-1] == m
    assert offs.values == sorted(offs.values)
    run("grouped", LAUNCH + 2 * m * n * k / GROUPED_RATE)
    return Tensor((m, n))


def set_grad_enabled(_):
    return contextlib.nullcontext()


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
