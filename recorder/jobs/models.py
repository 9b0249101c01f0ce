"""Small models, one for each thing that training jobs do to hook order."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Mlp(nn.Module):
    """Two linear layers; the loss is inside the model unless it is asked to stay outside."""

    def __init__(self, has_loss=True):
        super().__init__()
        self.l1, self.l2 = nn.Linear(4, 6), nn.Linear(6, 3)
        self.has_loss = has_loss

    def forward(self, x):
        y = self.l2(torch.tanh(self.l1(x)))
        return y.pow(2).mean() if self.has_loss else y


class Net(nn.Module):
    """An input layer, some blocks with norms, a head: eight features to four."""

    def __init__(self, blocks=2, width=16):
        super().__init__()
        self.inp, self.head = nn.Linear(8, width), nn.Linear(width, 4)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(torch.tanh(self.a(x)))


class Checkpointed(nn.Module):
    """Two blocks under activation checkpoints, between an input layer and a head."""

    def __init__(self, reentrant, is_partly_frozen=False):
        super().__init__()
        self.inp, self.head = nn.Linear(4, 5), nn.Linear(5, 2)
        self.b1, self.b2 = Block(5), Block(5)
        self.reentrant = reentrant
        if is_partly_frozen:
            for param in [*self.b1.a.parameters(), *self.b2.b.parameters()]:
                param.requires_grad_(False)

    def forward(self, x):
        h = self.inp(x)
        h = checkpoint(self.b1, h, use_reentrant=self.reentrant)
        h = checkpoint(self.b2, h, use_reentrant=self.reentrant)
        return self.head(h).pow(2).mean()


class TwoHeads(nn.Module):
    """A trunk and two heads: two losses from one forward."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 6)
        self.ha, self.hb = nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, x):
        h = torch.tanh(self.trunk(x))
        return self.ha(h).pow(2).mean(), self.hb(h).abs().mean()


class Tied(nn.Module):
    """One layer applied twice."""

    def __init__(self):
        super().__init__()
        self.shared, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.shared(torch.tanh(self.shared(x))))).pow(2).mean()


class Square(nn.Module):
    """Three layers of one size: gradients that can be mistaken for each other."""

    def __init__(self):
        super().__init__()
        self.l1, self.l2, self.l3 = (nn.Linear(4, 4, bias=False) for _ in range(3))

    def forward(self, x):
        return self.l3(torch.tanh(self.l2(torch.tanh(self.l1(x))))).pow(2).mean()


class Unused(Mlp):
    """A layer that takes no part."""

    def __init__(self):
        super().__init__()
        self.extra = nn.Linear(3, 3)


class _NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return grad * w, None


class UndefinedGradient(nn.Module):
    """A parameter that is in the graph and gets no gradient."""

    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(4, 6), nn.Linear(6, 2)
        self.w = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return self.l2(_NoGradient.apply(torch.tanh(self.l1(x)), self.w)).pow(2).mean()


class _FailsOnce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, failures):
        ctx.failures = failures
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        if ctx.failures:
            raise ValueError(ctx.failures.pop())
        return grad, None


class FailsOnce(Mlp):
    """The first backward raises in the middle."""

    def __init__(self):
        super().__init__()
        self.failures = ["injected"]

    def forward(self, x):
        return self.l2(_FailsOnce.apply(torch.tanh(self.l1(x)), self.failures)).pow(2).mean()


class _TiledLoss(torch.autograd.Function):
    """Calls backward for each tile inside its own forward."""

    @staticmethod
    def forward(ctx, head, hidden, tiles):
        hidden = hidden.detach()
        grad, total, at = torch.zeros_like(hidden), 0.0, 0
        parts = hidden.chunk(tiles, 0)
        for number, part in enumerate(parts, 1):
            head.weight.ds_grad_is_ready = number == len(parts)
            part = part.detach().requires_grad_(True)
            with torch.enable_grad():
                loss = head(part).float().pow(2).mean() / len(parts)
            torch.autograd.backward(loss)
            grad[at : at + len(part)] = part.grad
            at += len(part)
            total = total + loss.detach()
        ctx.save_for_backward(grad)
        return total

    @staticmethod
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors
        return None, saved * grad, None


class Tiled(nn.Module):
    """A loss computed and differentiated tile by tile inside the forward."""

    def __init__(self):
        super().__init__()
        self.l1, self.head = nn.Linear(4, 6), nn.Linear(6, 3, bias=False)

    def forward(self, x):
        return _TiledLoss.apply(self.head, torch.tanh(self.l1(x)), 2)


class WithLeafBlock(nn.Module):
    """A block that stage 3 is configured to fetch as one unit."""

    def __init__(self):
        super().__init__()
        self.inp, self.blk, self.head = nn.Linear(4, 5), Block(5), nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.blk(self.inp(x))).pow(2).mean()
