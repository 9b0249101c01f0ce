"""Lightning over DDP on gloo: accumulation 2, clipping, a validation loop."""

from job import batch, finish, need

need("lightning")

import logging
import os
import warnings

import lightning
import torch
from models import Net

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class Task(lightning.LightningModule):
    """A Net and its loss."""

    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, data, _):
        return self.net(data[0]).pow(2).mean()

    def validation_step(self, data, _):
        self.log("loss", self.net(data[0]).pow(2).mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def loader(seed, rows):
    """Batches of two."""
    data = torch.utils.data.TensorDataset(batch(seed, rows=rows, width=8))
    return torch.utils.data.DataLoader(data, batch_size=2)


os.environ.setdefault("PL_DISABLE_FORK", "1")
lightning.seed_everything(7, verbose=False)
task = Task()
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=2,
    strategy="ddp",
    max_epochs=2,
    accumulate_grad_batches=2,
    gradient_clip_val=1.0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(task, loader(1, 16), loader(2, 8))
finish(task)
