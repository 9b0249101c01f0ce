# Writes composed_transforms.json: numbers that PyTorch 2.11.0 computes with nested transforms.
# python composed_transforms.py > composed_transforms.json
import json

import torch
from torch.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

torch.set_default_dtype(torch.float64)
X = torch.tensor([0.4, -0.7, 1.1])
W = torch.tensor([[0.3, -0.2, 0.5], [-0.6, 0.1, 0.4], [0.2, 0.7, -0.3]], requires_grad=True)
XS = torch.stack([X, X * 0.5, X + 1.0, -X])


def vector(x):
    return torch.tanh(W @ torch.sin(x)) * x


def scalar(x):
    return (vector(x) ** 2).sum()


def penalty(x):
    return (grad(scalar)(x) ** 2).sum()


def captured(transformed, x):
    out = transformed(x)
    return torch.autograd.grad((out ** 2).sum(), W)[0]


out = {
    "x": X, "w": W, "xs": XS,
    "grad": grad(scalar)(X),
    "grad_grad": grad(penalty)(X),
    "vmap_grad": vmap(grad(scalar))(XS),
    "grad_vmap": grad(lambda xs: (vmap(scalar)(xs) ** 3).sum())(XS),
    "jacrev": jacrev(vector)(X),
    "jacfwd": jacfwd(vector)(X),
    "hessian": hessian(scalar)(X),
    "hessian_vector": hessian(vector)(X),
    "jacrev_jacrev": jacrev(jacrev(vector))(X),
    "jacfwd_jacfwd": jacfwd(jacfwd(vector))(X),
    "jacrev_jacfwd": jacrev(jacfwd(vector))(X),
    "vmap_hessian": vmap(hessian(scalar))(XS),
    "jacrev_vmap": jacrev(vmap(scalar))(XS),
    "grad_of_hessian_trace": grad(lambda x: torch.diag(hessian(scalar)(x)).sum())(X),
    "jvp_grad": jvp(grad(scalar), (X,), (X * X,))[1],
    "vjp_jvp": vjp(lambda x: jvp(vector, (x,), (X * X,))[1], X)[1](X)[0],
    "value": grad_and_value(scalar)(X)[1],
    "captured_grad": captured(grad(scalar), X),
    "captured_vmap_grad": captured(vmap(grad(scalar)), XS),
    "captured_jacrev": captured(jacrev(vector), X),
    "captured_hessian": captured(hessian(scalar), X),
    "captured_jvp": captured(lambda x: jvp(vector, (x,), (X * X,))[1], X),
}


class Order:
    """In which order a later backward at level 0 accumulates the leaves of a small network."""

    def __init__(self):
        self.fired = []
        self.leaves = {"w1": self.leaf("w1", 3, 3), "b1": self.leaf("b1", 3), "w2": self.leaf("w2", 3, 3),
                       "b2": self.leaf("b2", 3)}

    def leaf(self, name, *sizes):
        leaf = torch.full(sizes, 0.25, requires_grad=True)
        leaf.register_post_accumulate_grad_hook(lambda _: self.fired.append(name))
        return leaf

    def vector(self, x):
        h = torch.tanh(torch.nn.functional.linear(x, self.leaves["w1"], self.leaves["b1"]))
        return torch.nn.functional.linear(h, self.leaves["w2"], self.leaves["b2"]) * torch.sin(h)

    def scalar(self, x):
        return (self.vector(x) ** 2).sum()

    def of(self, result):
        self.fired.clear()
        (result ** 2).sum().backward()
        return " ".join(self.fired)


order = Order()
v, s = order.vector, order.scalar
orders = {
    "grad": order.of(grad(s)(X)),
    "vmap_grad": order.of(vmap(grad(s))(XS)),
    "grad_vmap": order.of(grad(lambda xs: vmap(s)(xs).sum())(XS)),
    "jacrev": order.of(jacrev(v)(X)),
    "jacfwd": order.of(jacfwd(v)(X)),
    "hessian": order.of(hessian(s)(X)),
    "jvp": order.of(jvp(v, (X,), (X,))[1]),
    "grad_grad": order.of(grad(lambda x: (grad(s)(x) ** 2).sum())(X)),
}
numbers = {k: {"sizes": list(t.shape), "values": t.flatten().tolist()} for k, t in out.items()}
text = json.dumps({"numbers": numbers, "orders": orders}, indent=0)
print(text.replace("\n", " ").replace("}, ", "},\n"))
