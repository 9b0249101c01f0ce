"""trl's DPOTrainer over a tiny llama: policy and reference under DDP, ZeRO-2 and ZeRO-3."""

import sys
import tempfile

from job import finish, need

ARGUMENTS = ("ddp", "zero2", "zero3")

need("trl", "datasets", "transformers", torch_version=(2, 7))
kind = sys.argv[1]
if kind != "ddp":
    import engines

import pyarrow
import tiny_language_models as tiny
import torch
import torch.distributed as dist
import transformers
from accelerate import PartialState
from datasets import Dataset
from datasets.table import InMemoryTable
from tokenizers import Tokenizer, models
from tokenizers.pre_tokenizers import Whitespace
from trl import DPOConfig, DPOTrainer

transformers.set_seed(7)
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
words = {word: number for number, word in enumerate(["<pad>", *(f"w{n}" for n in range(60))])}
raw = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
raw.pre_tokenizer = Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=raw, pad_token="<pad>", eos_token="<pad>", bos_token="<pad>"
)
rows = [
    {"prompt": f"w{n} w{n + 1}", "chosen": f"w{n + 2} w3", "rejected": f"w{n + 4} w5 w6"}
    for n in range(16)
]
# With a name: datasets would pickle the table to make one, which some releases of pyarrow refuse.
data = Dataset(InMemoryTable(pyarrow.Table.from_pylist(rows)), fingerprint="rows")
more = {"use_cpu": True, "ddp_backend": "gloo"} if kind == "ddp" else {}
if kind != "ddp":
    more["deepspeed"] = engines.configuration(
        int(kind[-1]), "auto", train_micro_batch_size_per_gpu="auto", gradient_clipping="auto"
    )
model, reference = tiny.make("llama"), tiny.make("llama")
with tempfile.TemporaryDirectory() as folder:
    arguments = DPOConfig(
        output_dir=folder,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=1,
        max_steps=3,
        logging_strategy="no",
        report_to=[],
        save_strategy="no",
        optim="adamw_torch",
        disable_tqdm=True,
        gradient_checkpointing=False,
        bf16=False,
        max_length=16,
        seed=7,
        **more,
    )
    if kind != "ddp":  # on the CPU accelerate does not see the group that DeepSpeed made
        place = {"num_processes": dist.get_world_size(), "process_index": dist.get_rank()}
        PartialState._shared_state.update(place, backend="gloo")
    trainer = DPOTrainer(
        model=model,
        ref_model=reference,
        args=arguments,
        train_dataset=data,
        processing_class=tokenizer,
    )
    trainer.remove_callback(transformers.PrinterCallback)  # it prints seconds
    trainer.train()
finish(model)
