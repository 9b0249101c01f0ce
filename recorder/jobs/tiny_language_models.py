"""Language models of a few thousand parameters, made from their configurations."""

import torch
import transformers

WIDTH = {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


def make(name):
    """A gpt2, llama or mixtral with random weights."""
    if name == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=64, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=0,
            eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(config)
    sizes = {**WIDTH, "intermediate_size": 32, "num_key_value_heads": 2}
    sizes.update(max_position_embeddings=32, bos_token_id=0, eos_token_id=0, pad_token_id=0)
    if name == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))
    sizes.update(num_local_experts=4, num_experts_per_tok=2, output_router_logits=True)
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(**sizes))


def with_lora(model, name):
    """Adapters of rank 2 on the attention."""
    import peft

    targets = ["c_attn"] if name == "gpt2" else ["q_proj", "v_proj"]
    config = peft.LoraConfig(
        r=2, lora_alpha=4, lora_dropout=0.0, target_modules=targets, task_type="CAUSAL_LM"
    )
    return peft.get_peft_model(model, config)


class Texts(torch.utils.data.Dataset):
    """Random token ids, the same in every run."""

    def __init__(self, count, length=12):
        generator = torch.Generator().manual_seed(3)
        self.ids = torch.randint(1, 64, (count, length), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, number):
        ids = self.ids[number]
        return {"input_ids": ids, "labels": ids, "attention_mask": torch.ones_like(ids)}
