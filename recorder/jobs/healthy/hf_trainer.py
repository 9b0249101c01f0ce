"""transformers.Trainer over tiny models: DDP, FSDP2, ZeRO-2, ZeRO-3; checkpoints, LoRA, experts."""

import sys
import tempfile

from job import finish, need

ARGUMENTS = (
    "ddp gpt2", "ddp llama lora", "zero2 gpt2", "zero2 llama reentrant", "zero3 llama nonreentrant",
    "zero3 llama lora", "zero3 mixtral", "fsdp2 llama",
)  # fmt: skip

need("transformers", "accelerate", torch_version=(2, 7))
if "lora" in sys.argv:
    need("peft")
if sys.argv[1].startswith("zero"):
    import engines

import tiny_language_models as tiny
import torch
import transformers

kind, name = sys.argv[1:3]
transformers.set_seed(7)
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
model = tiny.make(name)
if "lora" in sys.argv:
    model = tiny.with_lora(model, name)
checkpoints = next((word for word in ("reentrant", "nonreentrant") if word in sys.argv), None)
more = {}
if kind.startswith("zero"):
    section = engines.zero(int(kind[-1]), reduce_bucket_size=20000)
    more["deepspeed"] = engines.configuration(
        int(kind[-1]),
        "auto",
        train_micro_batch_size_per_gpu="auto",
        gradient_clipping="auto",
        zero_optimization=section,
    )
else:
    more.update(use_cpu=True, ddp_backend="gloo")
if kind == "fsdp2":
    layer = type(model.model.layers[0]).__name__
    more.update(fsdp=True, fsdp_config={"version": 2, "transformer_layer_cls_to_wrap": [layer]})
if checkpoints:
    more.update(
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": checkpoints == "reentrant"},
    )
    model.config.use_cache = False
with tempfile.TemporaryDirectory() as folder:
    arguments = transformers.TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        max_steps=3,
        logging_strategy="no",
        report_to=[],
        save_strategy="no",
        optim="adamw_torch",
        learning_rate=1e-3,
        disable_tqdm=True,
        seed=7,
        **more,
    )
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=tiny.Texts(32))
    trainer.remove_callback(transformers.PrinterCallback)  # it prints seconds
    trainer.train()
finish(model)
