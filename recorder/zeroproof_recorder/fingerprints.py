"""A hash and a norm of tensors, computed where they lie, fetched with one copy a device."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import torch

# Words of 8 bytes that are hashed at a time: what a hash needs beside the tensor is this much.
CHUNK = 1 << 20
# Smaller tensors are hashed together, up to twice as many words at a time: starting a kernel takes
# longer than adding what is in them.
SMALL = 1 << 18
_MASK = (1 << 64) - 1

Value = tuple[Optional[str], Optional[float]]  # hash in hexadecimal digits, norm


class Fingerprints:
    """Results that still lie on the device; `fetch` brings them over."""

    def __init__(self):
        self._hashes: list[Optional[torch.Tensor]] = []
        self._norms: list[Optional[torch.Tensor]] = []
        self._sizes: list[int] = []  # in elements

    def add(self, tensors: Sequence[Optional[torch.Tensor]]) -> None:
        """Computes both of each tensor; None where there is no tensor or none that can be read."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            plain = [readable(tensor) for tensor in tensors]
            self._hashes += _hashes(plain)
            self._norms += _norms(plain)
            self._sizes += [0 if tensor is None else tensor.numel() for tensor in plain]

    def fetch(self) -> list[Value]:
        """All values, in the order in which they were added."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            values = _on_host([*self._hashes, *map(_as_bits, self._norms)])
        count = len(self._hashes)
        hashes = [_hex(total, size) for total, size in zip(values[:count], self._sizes)]
        self._hashes, self._norms, self._sizes = [], [], []
        return list(zip(hashes, map(_as_float, values[count:])))


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


def _hashes(tensors: Sequence[Optional[torch.Tensor]]) -> list[Optional[torch.Tensor]]:
    """Of each tensor the sum of word times weight, modulo 2^64: no order of the sum changes it."""
    hashes: list[Optional[torch.Tensor]] = [None] * len(tensors)
    small: dict[torch.device, list[tuple[int, torch.Tensor]]] = {}
    for place, tensor in enumerate(tensors):
        if tensor is None:
            continue
        flat = tensor.contiguous().view(-1)
        width = max(8 // flat.element_size(), 1)  # elements of a word
        if flat.device.type != "cpu" and 0 < flat.numel() <= SMALL * width:
            small.setdefault(flat.device, []).append((place, _words(flat, width)))
        else:
            hashes[place] = _sum(flat, width)
    for device, members in small.items():
        for together in _batches(members):
            sums = _sums([words for _, words in together], _weights.on(device))
            for (place, _), total in zip(together, sums):
                hashes[place] = total
    return hashes


def _sum(flat: torch.Tensor, width: int) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    weights = _weights.on(flat.device)
    for number, start in enumerate(range(0, flat.numel(), CHUNK * width)):
        words = _words(flat[start : start + CHUNK * width], width)
        total = total + _dot(words, weights[: words.numel()]) * _chunk_weight(number)
    return total


def _batches(members: list[tuple[int, torch.Tensor]]) -> Iterator[list[tuple[int, torch.Tensor]]]:
    """Parts of at most 2 * SMALL words."""
    batch: list[tuple[int, torch.Tensor]] = []
    size = 0
    for place, words in members:
        if size + words.numel() > 2 * SMALL:
            yield batch
            batch, size = [], 0
        batch.append((place, words))
        size += words.numel()
    yield batch


def _sums(parts: list[torch.Tensor], weights: torch.Tensor) -> Sequence[torch.Tensor]:
    """`_sum` of several tensors of one chunk each: differences of one running sum, which wraps."""
    products = torch._foreach_mul(parts, [weights[: part.numel()] for part in parts])
    running = torch.cumsum(torch.cat(products), 0)
    last = [end - 1 for end in itertools.accumulate(part.numel() for part in parts)]
    at_ends = running[torch.tensor(last, device="cpu").to(running.device)]
    return torch.diff(at_ends, prepend=at_ends.new_zeros(1)).unbind()


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


def _hex(total: Optional[int], size: int) -> Optional[str]:
    """The size begins the sum, so that zeros of two sizes differ."""
    return None if total is None else f"{total + size * 0x9E3779B97F4A7C15 & _MASK:016x}"


def _as_float(bits: Optional[int]) -> Optional[float]:
    if bits is None:
        return None
    return struct.unpack("<d", struct.pack("<q", bits))[0]
