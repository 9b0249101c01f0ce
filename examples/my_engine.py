"""ZeRO stage 1 by hand: an engine that zeroproof's programs run on (docs/how-to/hunt_an_engine.md).

Run, from this folder: python -m zeroproof_subject compare --engine my_engine:make programs.jsonl
With a bug: --set overwrites=true
"""

import dataclasses

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from zeroproof_subject.windows import WindowedEngine

MISSING_IS_ZERO = True  # a flat group has zeros for parameters without a gradient


class Flat:
    """The parameters of a group as one vector, of which this rank updates a slice."""

    def __init__(self, parameters, job):
        self.parameters = parameters
        self.size = sum(it.numel() for it in parameters)
        self.slice_size = -(-self.size // job.ranks)
        self.begin = job.rank * self.slice_size
        self.gradient = torch.zeros(self.slice_size * job.ranks)
        for parameter in parameters:
            dist.broadcast(parameter.data, src=0)
        self.own = torch.nn.Parameter(self.slice_of(parameters_to_vector(parameters).detach()))

    def slice_of(self, vector):
        """The slice of this rank, with zeros after the end."""
        padded = torch.cat([vector, torch.zeros(self.gradient.numel() - vector.numel())])
        return padded[self.begin : self.begin + self.slice_size].clone()

    def take(self, overwrites):
        """Moves .grad of the parameters into the window's vector."""
        zeros = (it.grad if it.grad is not None else torch.zeros_like(it) for it in self.parameters)
        vector = torch.cat([it.reshape(-1) for it in zeros])
        if overwrites:
            self.gradient[: self.size] = vector
        else:
            self.gradient[: self.size] += vector
        for parameter in self.parameters:
            parameter.grad = None

    def averaged(self):
        """The window's gradient on all ranks."""
        mean = self.gradient / dist.get_world_size()
        dist.all_reduce(mean)
        return mean

    def publish(self):
        """Gives every rank the slices of all."""
        slices = [torch.empty_like(self.own) for _ in range(dist.get_world_size())]
        dist.all_gather(slices, self.own.data)
        vector_to_parameters(torch.cat(slices)[: self.size], self.parameters)


class MyEngine(WindowedEngine):
    """`overwrites` is the bug: the last backward of a window is the only one that counts."""

    def __init__(self, job, overwrites=False):
        self.overwrites = overwrites
        self.flats = [Flat(group, job) for group in job.groups]
        super().__init__(dataclasses.replace(job, groups=[[flat.own] for flat in self.flats]))

    def backward(self, loss, **options):
        """Adds to the window."""
        super().backward(loss, **options)
        for flat in self.flats:
            flat.take(self.overwrites)

    def clip(self):
        """Sets the gradients of the slices, clipped by the norm of all of them."""
        means = [flat.averaged() for flat in self.flats]
        norm = torch.cat(means).norm()
        limit = self.settings.clipping
        factor = min(1.0, limit / (norm.item() + 1e-6)) if limit > 0 else 1.0
        for flat, mean in zip(self.flats, means, strict=True):
            flat.own.grad = factor * flat.slice_of(mean[: flat.size])

    def zero_grad(self):
        """Also between backwards of a window."""
        super().zero_grad()
        for flat in self.flats:
            flat.gradient.zero_()

    def step(self):
        """The update of every slice reaches all ranks."""
        is_update = self.will_step()
        super().step()
        if is_update:
            for flat in self.flats:
                flat.publish()

    def gradients(self):
        """By the parameter's name."""
        names = {id(it): name for name, it in self.job.model.named_parameters()}
        gradients = {}
        for flat in self.flats:
            sizes = [it.numel() for it in flat.parameters]
            parts = flat.averaged()[: flat.size].split(sizes)
            named = [names[id(it)] for it in flat.parameters]
            gradients |= dict(zip(named, parts, strict=True))
        return gradients

    def optimizer_state(self):
        """No entry: users of this engine read no optimizer state."""
        return {}


def make(job, **options):
    """Called on every rank for each program."""
    return MyEngine(job, **options)
