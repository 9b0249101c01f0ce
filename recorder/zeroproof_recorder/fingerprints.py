"""A hash and a norm of tensors, computed where they lie, fetched with one copy a device."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Optional

import torch

# Words of 8 bytes that are hashed at a time: what a hash needs beside the tensor is this much.
CHUNK = 1 << 20
_MASK = (1 << 64) - 1

Value = tuple[Optional[str], Optional[float]]  # hash in hexadecimal digits, norm


class Fingerprints:
    """Results that still lie on the device; `fetch` brings them over."""

    def __init__(self):
        self._hashes: list[Optional[torch.Tensor]] = []
        self._norms: list[Optional[torch.Tensor]] = []

    def add(self, tensors: Sequence[Optional[torch.Tensor]]) -> None:
        """Computes both of each tensor; None where there is no tensor or none that can be read."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            plain = [readable(tensor) for tensor in tensors]
            self._hashes += [None if tensor is None else _hash(tensor) for tensor in plain]
            self._norms += _norms(plain)

    def fetch(self) -> list[Value]:
        """All values, in the order in which they were added."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            values = _on_host([*self._hashes, *map(_as_bits, self._norms)])
        count = len(self._hashes)
        self._hashes, self._norms = [], []
        return list(zip(map(_hex, values[:count]), map(_as_float, values[count:])))


class Weights:
    """One odd number for each word of a chunk, the same on every device and every rank."""

    def __init__(self):
        self._by_device: dict[torch.device, torch.Tensor] = {}

    def on(self, device: torch.device) -> torch.Tensor:
        """The numbers on a device; made with the first use."""
        found = self._by_device.get(device)
        if found is None:
            index = torch.arange(1, CHUNK + 1, dtype=torch.int64, device="cpu")
            found = self._by_device[device] = _mixed(index).to(device)
        return found


_weights = Weights()


def readable(tensor: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """What this rank holds of a tensor, without its history; None if that is no plain memory."""
    if tensor is None:
        return None
    local = getattr(tensor, "_local_tensor", tensor)
    if local.layout is not torch.strided or local.is_meta or local.is_quantized:
        return None
    local = local.detach()
    if type(local) is not torch.Tensor or torch._C._functorch.is_functorch_wrapped_tensor(local):
        return None
    if local.is_complex():
        local = torch.view_as_real(local.resolve_conj())
    return local.resolve_neg()


# ---- the hash ----------------------------------------------------------------------------------


def _hash(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of word times weight, modulo 2^64: no order of the sum can change it."""
    flat = tensor.contiguous().view(-1)
    width = max(8 // flat.element_size(), 1)  # elements of a word
    seed = _signed(flat.numel() * 0x9E3779B97F4A7C15)
    total = torch.full((), seed, dtype=torch.int64, device=flat.device)
    weights = _weights.on(flat.device)
    for number, start in enumerate(range(0, flat.numel(), CHUNK * width)):
        words = _words(flat[start : start + CHUNK * width], width)
        total = total + _dot(words, weights[: words.numel()]) * _chunk_weight(number)
    return total


def _words(part: torch.Tensor, width: int) -> torch.Tensor:
    rest = part.numel() % width
    if rest:
        part = torch.cat([part, part.new_zeros(width - rest)])
    elif part.storage_offset() * part.element_size() % 8:
        part = part.clone()
    return part.view(torch.int64)


def _dot(words: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    if words.device.type == "cpu":
        return torch.dot(words, weights)
    return (words * weights).sum()


def _mixed(index: torch.Tensor) -> torch.Tensor:
    """Splitmix64 of each index, made odd: a word that changes alone always changes the sum."""
    mixed = index * _signed(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> shift)) * _signed(factor)
    return mixed | 1


def _chunk_weight(number: int) -> int:
    return _signed((number * 0xD1342543DE82EF95 + 1) | 1)


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


# ---- the norm ----------------------------------------------------------------------------------


def _norms(tensors: Sequence[Optional[torch.Tensor]]) -> list[Optional[torch.Tensor]]:
    """In float32, or float64 for what is that wide; None for integers and 8-bit numbers."""
    norms: list[Optional[torch.Tensor]] = [None] * len(tensors)
    groups: dict[Any, list[int]] = {}
    for place, tensor in enumerate(tensors):
        if tensor is not None and tensor.is_floating_point() and tensor.element_size() > 1:
            groups.setdefault((tensor.device, tensor.dtype), []).append(place)
    for (_, dtype), places in groups.items():
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        members = [tensors[place] for place in places]
        for place, norm in zip(places, _group_norms(members, wide)):
            norms[place] = norm.to(torch.float64)
    return norms


def _group_norms(tensors: list[torch.Tensor], wide: torch.dtype) -> Sequence[torch.Tensor]:
    if tensors[0].dtype == wide and all(tensor.numel() for tensor in tensors):
        return torch._foreach_norm(tensors)
    return [torch.linalg.vector_norm(tensor, dtype=wide) for tensor in tensors]


# ---- to the host -------------------------------------------------------------------------------


def _as_bits(norm: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    return None if norm is None else norm.view(torch.int64)


def _on_host(values: Sequence[Optional[torch.Tensor]]) -> list[Optional[int]]:
    found: list[Optional[int]] = [None] * len(values)
    devices: dict[torch.device, list[int]] = {}
    for place, value in enumerate(values):
        if value is not None:
            devices.setdefault(value.device, []).append(place)
    for places in devices.values():
        fetched = torch.stack([values[place] for place in places]).tolist()
        for place, number in zip(places, fetched):
            found[place] = number
    return found


def _hex(bits: Optional[int]) -> Optional[str]:
    return None if bits is None else f"{bits & _MASK:016x}"


def _as_float(bits: Optional[int]) -> Optional[float]:
    if bits is None:
        return None
    return struct.unpack("<d", struct.pack("<q", bits))[0]
