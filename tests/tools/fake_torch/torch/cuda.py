# SPDX-License-Identifier: Apache-2.0
import contextlib

import torch
from torch import Device


def is_available():
    return torch.BROKEN != "no gpu"


def get_device_properties(_):
    class Properties:
        name = "NVIDIA Fake"
        multi_processor_count = 132
        total_memory = 80 << 30
        L2_cache_size = 50 << 20
    return Properties


def synchronize():
    assert Device.capturing is None


def empty_cache():
    pass


class Event:
    def __init__(self, enable_timing):
        assert enable_timing
        self.time = None

    def record(self):
        assert Device.capturing is None
        self.time = Device.now

    def synchronize(self):
        assert self.time is not None

    def elapsed_time(self, other):
        return 1e3 * (other.time - self.time)


class Stream:
    def wait_stream(self, _):
        pass


def current_stream():
    return Stream()


@contextlib.contextmanager
def stream(_):
    yield


class CUDAGraph:
    seconds = None

    def replay(self):
        torch.run("replay", self.seconds)


@contextlib.contextmanager
def graph(captured):
    Device.capturing = 0.0
    try:
        yield
        captured.seconds = Device.capturing
    finally:
        Device.capturing = None
