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
print(json.dumps({k: {"sizes": list(v.shape), "values": v.flatten().tolist()}
                  for k, v in out.items()}, indent=0).replace("\n", " ").replace("}, ", "},\n"))
