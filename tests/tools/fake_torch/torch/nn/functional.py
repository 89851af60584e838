# SPDX-License-Identifier: Apache-2.0
import torch


def scaled_dot_product_attention(q, k, v, is_causal):
    assert is_causal and q.shape == k.shape == v.shape
    torch.run("attention", torch.attention_seconds(q.shape, "forward"))
    return torch.Tensor(q.shape)


def rms_norm(x, shape, weight):
    assert shape == weight.shape == x.shape[1:]
    torch.run("norm", torch.LAUNCH + 2 * x.bytes / torch.COPY_RATE)
    return torch.Tensor(x.shape)


layer_norm = rms_norm


def linear(x, weight):
    return torch.mm(x, weight.t())


def silu(x):
    return x.elementwise()
