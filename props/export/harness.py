import collections
import contextlib
import datetime
import os
import socket
import sys

try:
    import torch
    import torch.distributed as dist
    from torch.utils.checkpoint import checkpoint
    if FRAMEWORK == "deepspeed":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
        import deepspeed
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)


# <the program stands here>
# ---- from here on the same in every script: runs the program plain and under the framework, and compares ----
LR = 1.0
WIDTH = 4


class Layer(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name = name
        seed = sum(ord(letter) * (at + 1) for at, letter in enumerate(name))
        self.weight = torch.nn.Parameter(0.5 + torch.arange(WIDTH) * 0.1 + (seed % 97) * 0.01)

    def forward(self, x):
        return torch.tanh(x) * self.weight


class Boom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("injected by the scenario")


class Tile(torch.autograd.Function):
    """Calls backward inside its forward, as a fused or tiled loss does."""

    @staticmethod
    def forward(ctx, body, x):
        with torch.enable_grad():
            body(x.detach().requires_grad_()).sum().backward()
        return torch.zeros(())

    @staticmethod
    def backward(ctx, grad):
        return None, None


class Engine:
    """What the program calls; `call` is the wrapped module, `module` the bare one."""

    def __init__(self, name, module, run):
        self.name, self.module, self.run = name, module, run
        self.micro = 0
        self.layers = {layer.name: layer for layer in module.children() if isinstance(layer, Layer)}
        for key, layer in self.layers.items():
            layer.weight.register_post_accumulate_grad_hook(lambda _, key=key: run.saw(self, "hook", key))
        self.wrap()

    def __call__(self, x, label):
        self.run.saw(self, "forward", label)
        out = self.call(x, label)
        self.run.saw(self, "forward ends", label)
        return out

    def weights(self):
        return {key: layer.weight.detach().clone() for key, layer in self.layers.items()}

    def is_boundary(self):
        return (self.micro + 1) % GAS == 0

    def no_sync(self):
        return contextlib.nullcontext()

    def depth(self):
        return 0

    def is_running(self):
        return False


class PlainEngine(Engine):
    """The reference: plain autograd, gradients summed over the window and averaged over the ranks."""

    def wrap(self):
        self.call = self.module

    def backward(self, loss, retain_graph):
        self.manual(loss, retain_graph)

    def manual(self, loss, retain_graph):
        (loss / GAS).backward(retain_graph=retain_graph)

    def step(self):
        self.micro += 1
        if self.micro % GAS:
            return None
        update = {}
        for key, layer in self.layers.items():
            grad = layer.weight.grad if layer.weight.grad is not None else torch.zeros(WIDTH)
            if dist.is_initialized():
                grad = grad.clone()
                dist.all_reduce(grad)
                grad /= dist.get_world_size()
            update[key] = LR * grad
            with torch.no_grad():
                layer.weight -= update[key]
            layer.weight.grad = None
        return update

    def zero_grad(self):
        for layer in self.layers.values():
            layer.weight.grad = None


class DeepSpeedEngine(Engine):
    def wrap(self):
        config = {
            "train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": GAS,
            "gradient_clipping": 0.0,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "gradient_clipping": 0.0,  # 0.19 clips by 1.0 by default
            "zero_optimization": {"stage": STAGE, "overlap_comm": OVERLAP_COMM, **ZERO},
            "steps_per_print": 10**9,
            **({"fp16": {"enabled": True, "loss_scale": 8}} if REQUIRES_SCALE else {}),
        }
        optimizer = torch.optim.SGD(self.module.parameters(), lr=LR)
        leaves = [child for child in self.module.children() if not isinstance(child, Layer)]
        if leaves:
            from deepspeed.utils import set_z3_leaf_modules
            set_z3_leaf_modules(self.module, [type(leaves[0])])
        self.call, *_ = deepspeed.initialize(model=self.module, optimizer=optimizer, config=config,
                                             dist_init_required=False)
        inner = self.call._backward_epilogue

        def epilogue():
            self.run.saw(self, "epilogue", "")
            return inner()

        self.call._backward_epilogue = epilogue
        state = getattr(self.call.optimizer, "_backward_hook_state", None)
        if state is not None and MODE == "count_fallback":
            state.queue_post_backward_callback = lambda: False

    def backward(self, loss, retain_graph):
        self.call.backward(loss, retain_graph=retain_graph)

    def manual(self, loss, retain_graph):
        loss.backward(retain_graph=retain_graph)

    def weights(self):
        from deepspeed.utils import safe_get_full_fp32_param
        full = {key: safe_get_full_fp32_param(layer.weight) for key, layer in self.layers.items()}
        return {key: (layer.weight if full[key] is None else full[key]).detach().clone()
                for key, layer in self.layers.items()}

    def step(self):
        before = self.weights()
        self.micro += 1
        self.call.step()
        after = self.weights()
        return {key: before[key] - after[key] for key in before} if self.micro % GAS == 0 else None

    def zero_grad(self):
        (self.call.optimizer if hasattr(self.call.optimizer, "zero_grad") else self.call).zero_grad()

    def depth(self):
        return getattr(self.call.optimizer, "_backward_active_depth", 0)

    def is_running(self):
        return bool(getattr(self.call, "_running_engine_backward", False))


class DdpEngine(PlainEngine):
    def wrap(self):
        from torch.nn.parallel import DistributedDataParallel
        self.call = DistributedDataParallel(self.module, **DDP)

    def no_sync(self):
        return contextlib.nullcontext() if self.is_boundary() else self.call.no_sync()

    def gradient(self, weight):
        return weight.grad

    def step(self):
        self.micro += 1
        if self.micro % GAS:
            return None
        update = {}
        for key, layer in self.layers.items():
            grad = self.gradient(layer.weight)
            update[key] = LR * (torch.zeros(WIDTH) if grad is None else grad.detach().clone())
        with torch.no_grad():
            for layer in self.layers.values():
                if layer.weight.grad is not None:
                    layer.weight -= LR * layer.weight.grad
                layer.weight.grad = None
        return update


class Fsdp2Engine(DdpEngine):
    def wrap(self):
        from torch.distributed.fsdp import fully_shard
        for layer in self.layers.values():
            fully_shard(layer)
        self.call = fully_shard(self.module)

    def no_sync(self):
        self.call.set_requires_gradient_sync(self.is_boundary())
        return contextlib.nullcontext()

    def gradient(self, weight):
        grad = weight.grad  # a plain tensor where an aborted backward left its unit unsharded
        return grad.full_tensor() if hasattr(grad, "full_tensor") else grad


class Run:
    """One execution of the program: engines, what was seen, what each step applied."""

    def __init__(self, engine_type):
        self.seen, self.updates, self.errors, self.after, self.counts = [], [], [], [], []
        self.task, self.forwards_open = None, 0
        self.engines = [engine_type(name, model(), self) for name, model in MODELS.items()]
        for engine in self.engines:
            setattr(self, engine.name, engine)

    def saw(self, engine, what, which):
        if what == "forward":
            self.forwards_open += 1
        self.seen.append((engine.name, what, which, self.task, self.forwards_open))
        if what == "forward ends":
            self.forwards_open -= 1

    def data(self, label):
        rank = dist.get_rank() if dist.is_initialized() else 0
        torch.manual_seed(sum(map(ord, label)) * 10 + rank)
        return torch.randn(WIDTH).requires_grad_()

    @contextlib.contextmanager
    def statement(self, text):
        kept = [(layer.weight, layer.weight.grad.clone() if layer.weight.grad is not None else None)
                for engine in self.engines for layer in engine.layers.values()] \
            if isinstance(self.engines[0], PlainEngine) and type(self.engines[0]) is PlainEngine else []
        try:
            yield
        except Exception as error:  # the user catches it and goes on
            self.errors.append((text, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"))
            self.forwards_open = 0
            for weight, grad in kept:  # an aborted backward does not change gradients
                weight.grad = grad
        for engine in self.engines:
            self.after.append((text, engine.name, engine.depth(), engine.is_running()))

    def backward(self, text, engine, loss, retain_graph, through_engine):
        with self.statement(text):
            self.task = text
            try:
                value = loss()
                value = value.sum() if value.dim() else value
                with engine.no_sync():
                    (engine.backward if through_engine else engine.manual)(value, retain_graph)
            finally:
                self.task = None

    def step(self, text, engine):
        with self.statement(text):
            update = engine.step()
            if update is not None:
                self.updates.append((text, engine.name, update))


def count_calls(run):
    """How often a hook counts the parameters that the graph can still reach (quadratic when in every hook)."""
    for path in ("deepspeed.runtime.zero.stage_1_and_2", "deepspeed.runtime.zero.stage3"):
        module = sys.modules.get(path)
        inner = getattr(module, "count_used_parameters_in_backward", None)
        if inner is None:
            continue

        def counted(*args, inner=inner, **kwargs):
            run.counts.append((run.task, torch._C._current_graph_task_id()))
            return inner(*args, **kwargs)

        module.count_used_parameters_in_backward = counted


def short(values):
    return "[" + ", ".join(f"{value:.4g}" for value in values.reshape(-1).tolist()) + "]"


def compare(run, plain):
    """(property, observed, expected) of everything that differs."""
    out = []
    for text, error in run.errors:
        if (text, error) not in plain.errors:
            out.append(("error", f"{text} raised {error}", "no error"))
    expected = {(text, name): update for text, name, update in plain.updates}
    for text, name, update in run.updates:
        for key, value in update.items():
            want = expected.get((text, name), {}).get(key)
            if want is not None and not torch.allclose(value.float(), want.float(), atol=1e-4, rtol=1e-3):
                out.append(("gradient", f"{text} applied {short(value)} to {key}", f"{short(want)}"))
    if FRAMEWORK == "deepspeed":
        out += compare_epilogues(run)
    return out


def compare_epilogues(run):
    out = []
    failed = {text for text, _ in run.errors}
    by_task = collections.OrderedDict()
    for name, what, which, task, open_forwards in run.seen:
        if what == "epilogue" and open_forwards:
            out.append(("P3", f"an epilogue of {name} ran inside a forward", "no epilogue before the user's backward"))
        if task is not None and what in ("hook", "epilogue"):
            by_task.setdefault((task, name), []).append((what, which))
    for (task, name), events in by_task.items():
        epilogues = [at for at, (what, _) in enumerate(events) if what == "epilogue"]
        order = " ".join(which if what == "hook" else "EPILOGUE" for what, which in events)
        if task in failed:
            continue
        if len(epilogues) != 1:
            out.append(("P1", f"{task}: {len(epilogues)} epilogues of {name} ({order})", "one epilogue, after the last hook"))
        late = [which for what, which in events[epilogues[0]:] if what == "hook"] if epilogues else []
        if late:
            out.append(("P2", f"{task}: hooks {' '.join(late)} ran after the epilogue of {name} ({order})",
                        "the epilogue after the last hook"))
    phases = collections.Counter(task for task, _ in set(run.counts))
    for task, count in collections.Counter(task for task, _ in run.counts).items():
        if task is not None and count > max(phases[task], 1):
            out.append(("P6", f"{task}: the reachable parameters were counted {count} times", f"{phases[task]} (once a phase)"))
    for text, name, depth, running in run.after:
        if depth:
            out.append(("P4", f"after {text} {name} still counts {depth} active backwards", "0"))
        if running:
            out.append(("P12", f"after {text} {name} still believes that engine.backward runs", "not running"))
    return out


# What a broken property looks like from outside: any of these observations shows it.
SHOWS = collections.defaultdict(lambda: ("gradient", "error"), {
    "P1": ("P1", ), "P2": ("P2", ), "P3": ("P3", ), "P4": ("P4", ), "P6": ("P6", ), "P12": ("P12", ),
    "P5": ("P6", "P1"), "P7": ("gradient", "error", "P1"), "P11": ("P4", "P12", "error", "gradient"),
})


def work():
    torch.set_num_threads(1)
    world = int(os.environ["WORLD_SIZE"])
    rank = int(os.environ["RANK"])
    if FRAMEWORK == "deepspeed":
        import logging
        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        with contextlib.suppress(Exception):  # only speeds up inference, and would want a compiler
            sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
        deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    else:
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    plain = Run(PlainEngine)
    with torch.enable_grad():
        PROGRAM(plain)
    run = Run({"deepspeed": DeepSpeedEngine, "ddp": DdpEngine, "fsdp2": Fsdp2Engine}[FRAMEWORK])
    if FRAMEWORK == "deepspeed":
        count_calls(run)
    PROGRAM(run)
    broken = [error for _, error in plain.errors if "injected by the scenario" not in error]
    if broken:
        print(f"the script itself does not work with plain PyTorch: {broken[0]}")
        sys.stdout.flush()
        os._exit(2)
    found = compare(run, plain)
    version = deepspeed.__version__ if FRAMEWORK == "deepspeed" else torch.__version__
    claimed = [(number, statement) for number, statement in CLAIMS]
    wanted = {kind for number, _ in claimed for kind in SHOWS[number]}
    shown = [one for one in found if not claimed or one[0] in wanted]
    if rank == 0:
        print(f"{TITLE}: {FRAMEWORK} {version}, torch {torch.__version__}, stage {STAGE}, {world} rank(s)")
        for number, statement in claimed:
            print(f"claim     {number}: {statement}")
        for kind, observed, wanted_text in found:
            print(f"observed  {kind}: {observed}\nexpected  {kind}: {wanted_text}")
        if not found:
            print("observed  what plain PyTorch does: same gradients, one epilogue after the last hook, no error")
        print("SYMPTOM" if shown else "no symptom")
        sys.stdout.flush()
    os._exit(1 if shown else 0)  # a stuck engine may not be torn down cleanly


def main():
    if "RANK" in os.environ:
        return work()
    import subprocess
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = dict(os.environ, WORLD_SIZE=str(WORLD_SIZE), LOCAL_WORLD_SIZE=str(WORLD_SIZE), MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=str(port), CUDA_VISIBLE_DEVICES="", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__)],
                              env=dict(environment, RANK=str(rank), LOCAL_RANK=str(rank))) for rank in range(WORLD_SIZE)]
    codes = [rank.wait() for rank in ranks]
    sys.exit(max((1 if code < 0 else code) for code in codes))


if __name__ == "__main__":
    main()
