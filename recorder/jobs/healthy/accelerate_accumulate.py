"""accelerate with gradient accumulation 2: over DDP, and over DeepSpeed stages 1 to 3."""

import sys

from job import batch, finish, need

ARGUMENTS = ("ddp", "zero1", "zero2", "zero3")

need("accelerate")
stage = int(sys.argv[1][-1]) if sys.argv[1] != "ddp" else None
if stage:
    import engines

import torch
from accelerate import Accelerator
from models import Net

torch.manual_seed(7)
torch.set_num_threads(1)
if stage:
    from accelerate import DeepSpeedPlugin

    plugin = DeepSpeedPlugin(hf_ds_config=engines.configuration(stage, accumulation=2))
    accelerator = Accelerator(cpu=True, deepspeed_plugin=plugin, gradient_accumulation_steps=2)
else:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer = accelerator.prepare(model, optimizer)
for micro in range(6):
    with accelerator.accumulate(model):
        loss = model(batch(micro, accelerator.process_index, width=8)).pow(2).mean()
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
finish(model)
