#include "props/train/config_readings.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/check.h"
#include "props/train/config_document.h"
#include "props/train/config_walk.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof::train {
namespace {

// Older names, other spellings and whatever changes nothing, and the same said plainly.
struct Synonym {
  const char* given;
  const char* plain;
};

constexpr Synonym kSynonyms[] = {
    {R"({"zero_optimization":true})", R"({"zero_optimization":{"stage":1}})"},
    {R"({"zero_optimization":false})", "{}"},
    {R"({"zero_optimization":true,"allgather_size":10})",
     R"({"zero_optimization":{"stage":1,"allgather_bucket_size":10}})"},
    {R"({"zero_optimization":{"cpu_offload":true}})",
     R"({"zero_optimization":{"offload_optimizer":{"device":"cpu"}}})"},
    {R"({"zero_optimization":{"cpu_offload_param":true}})",
     R"({"zero_optimization":{"offload_param":{"device":"cpu"}}})"},
    {R"({"zero_optimization":{"offload_optimizer":{},"offload_param":{"pin_memory":true}}})", "{}"},
    {R"({"zero_optimization":{"prefetch_bucket_size":3}})",
     R"({"zero_optimization":{"stage3_prefetch_bucket_size":3}})"},
    {R"({"zero_optimization":{"param_persistence_threshold":3}})",
     R"({"zero_optimization":{"stage3_param_persistence_threshold":3}})"},
    {R"({"zero_optimization":{"model_persistence_threshold":3}})",
     R"({"zero_optimization":{"stage3_model_persistence_threshold":3}})"},
    {R"({"zero_optimization":{"max_live_parameters":3}})",
     R"({"zero_optimization":{"stage3_max_live_parameters":3}})"},
    {R"({"zero_optimization":{"max_reuse_distance":3}})",
     R"({"zero_optimization":{"stage3_max_reuse_distance":3}})"},
    {R"({"zero_optimization":{"module_granularity_threshold":3}})",
     R"({"zero_optimization":{"stage3_module_granularity_threshold":3}})"},
    {R"({"zero_optimization":{"stage":2,"reduce_bucket_size":5e8,"overlap_comm":null}})",
     R"({"zero_optimization":{"stage":2,"reduce_bucket_size":500000000}})"},
    {R"({"zero_optimization":{"stage":3,"reduce_bucket_size":"auto"},"gradient_clipping":"auto"})",
     R"({"zero_optimization":{"stage":3}})"},
    {R"({"zero_optimization":{"leaf_module":{"names":"block"}}})",
     R"({"zero_optimization":{"leaf_module":{"names":["block"]}}})"},
    {R"({"zero_optimization":{"zero_hpz_partition_size":2,"zenflow":null}})", "{}"},
    {R"({"bfloat16":{"enabled":true,"check_grad_overflow":false}})",
     R"({"bf16":{"enabled":true,"check_grad_overflow":false}})"},
    {R"({"communication_data_type":"FP16"})", R"({"communication_data_type":"fp16"})"},
    {R"({"data_types":{"grad_accum_dtype":"torch.bfloat16"}})",
     R"({"data_types":{"grad_accum_dtype":"bf16"}})"},
    {R"({"data_types":{"grad_accum_dtype":"float"}})",
     R"({"data_types":{"grad_accum_dtype":"fp32"}})"},
    {R"({"communication_data_type":null,"data_types":{"grad_accum_dtype":"auto"}})", "{}"},
    {R"({"data_types":{"grad_accum_dtype":"float32","param_dtype":"torch.float32"}})",
     R"({"data_types":{"grad_accum_dtype":"fp32","param_dtype":"fp32"}})"},
    {R"({"torch_autocast":{"enabled":true,"dtype":"half"}})",
     R"({"torch_autocast":{"enabled":true,"dtype":"float16"}})"},
    {R"({"torch_autocast":{"lower_precision_safe_modules":null}})", "{}"},
    {R"({"gradient_allreduce_op":"SUM"})", R"({"gradient_allreduce_op":"sum"})"},
    {R"({"gradient_allreduce_op":"Mean"})", "{}"},
    {R"({"optimizer":{"type":"adam"}})",
     R"({"optimizer":{"type":"Adam","params":{"adam_w_mode":true,"weight_decay":0,"lr":0.001,
         "betas":[0.9,0.999],"eps":1e-8}}})"},
    {R"({"optimizer":{"type":"ADAMW","params":{"torch_adam":true}}})",
     R"({"optimizer":{"type":"AdamW","params":{"torch_adam":true,"weight_decay":0.01}}})"},
    {R"({"optimizer":{"type":"Adam","params":{"torch_adam":true,"adam_w_mode":false}}})",
     R"({"optimizer":{"type":"Adam","params":{"torch_adam":true,"adam_w_mode":false,
         "weight_decay":0}}})"},
    {R"({"optimizer":{"type":"SGD"}})",
     R"({"optimizer":{"type":"SGD","params":{"lr":0.001,"momentum":0,"dampening":0,
         "weight_decay":0,"nesterov":false,"maximize":false}}})"},
    {R"({"stage":1,"_note":"mine","data_types":{"xyzzy":1}})", "{}"},
    {R"({"zero_optimization":{"stage":"2","overlap_comm":1}})",
     R"({"zero_optimization":{"stage":2,"overlap_comm":true}})"},
    {R"({"bf16":{"enabled":"yes"}})", R"({"bf16":{"enabled":true}})"},
    {R"({"bf16":{"enabled":true},"bfloat16":{}})", R"({"bf16":{"enabled":true}})"},
    {R"({"zero_optimization":{"stage":1},"allgather_size":5})",
     R"({"zero_optimization":{"stage":1}})"},
    {R"({"zero_optimization":{"stage":3,"sub_group_size":0}})",
     R"({"zero_optimization":{"stage":3,"sub_group_size":1}})"},
    {"{zero_optimization: {stage: 1,}, # one\n}", R"({"zero_optimization":{"stage":1}})"},
    {R"({"pipeline":{"stages":1},"tensor_parallel":{"autotp_size":1}})", "{}"},
    {R"({"fp16":{"auto_cast":true},"compile":{"deepcompile":false}})", "{}"},
    {R"({"gradient_accumulation_steps":1,"train_micro_batch_size_per_gpu":1})", "{}"},
    {R"({"optimizer":{"type":"AdamW","params":{"adam_w_mode":false,"weight_decay":0.5}}})",
     R"({"optimizer":{"type":"AdamW","params":{"weight_decay":0.5}}})"},
    {R"({"zero_optimization":{"stage":3,"overlap_comm":null}})",
     R"({"zero_optimization":{"stage":3}})"},
    {R"({"optimizer":{"type":"AdamW"}})",
     R"({"optimizer":{"type":"AdamW","params":{"weight_decay":0}}})"},
    {R"({"data_efficiency":{"data_routing":{"enabled":false}}})", "{}"},
    {R"({"fp16":{"enabled":true},"bf16":{"enabled":false}})", R"({"fp16":{"enabled":true}})"},
    {R"({"optimizer":{"type":"Adam","params":{"betas":[0.5,0.25]}}})",
     R"({"optimizer":{"type":"Adam","params":{"betas":[0.50,25e-2],"lr":1e-3}}})"},
};

// What no engine should be made from, and the place that its error names.
struct RefusedDocument {
  const char* given;
  const char* place;
};

constexpr RefusedDocument kRefusedDocuments[] = {
    {"", "empty"},
    {"{", ""},
    {"[]", "object"},
    {R"({"zero_optimization":{"satge":1}})", "/zero_optimization/satge"},
    {R"({"zero_optimization":{"stage":4}})", "/zero_optimization/stage"},
    {R"({"zero_optimization":{"stage":-1}})", "/zero_optimization/stage"},
    {R"({"zero_optimization":3})", "/zero_optimization"},
    {R"({"zero_optimization":{"overlap_comm":"maybe"}})", "/zero_optimization/overlap_comm"},
    {R"({"zero_optimization":{"stage":"two"}})", "/zero_optimization/stage"},
    {R"({"prescale_gradients":"yes"})", "/prescale_gradients"},
    {R"({"optimizer":null})", "/optimizer"},
    {R"({"elasticity":{"enabled":false}})", "/elasticity"},
    {R"({"communication_data_type":"half"})", "/communication_data_type"},
    {R"({"optimizer":{"type":"sgd"}})", "/optimizer/type"},
    {R"({"zero_optimization":{"max_live_parameters":1,"stage3_max_live_parameters":1}})",
     "/zero_optimization/stage3_max_live_parameters"},
    {R"({"zero_optimization":{"cpu_offload":true,"offload_optimizer":{"device":"cpu"}}})",
     "/zero_optimization/cpu_offload"},
    {R"({"zero_optimization":{"offload_param":{"device":"nvme"}}})",
     "/zero_optimization/offload_param/device"},
    {R"({"zero_optimization":{"legacy_stage1":true}})", "/zero_optimization/legacy_stage1"},
    {R"({"scheduler":{"type":"WarmupLr"}})", "/scheduler/type"},
    {R"({"zero_optimization":{"zero_quantized_gradients":true}})",
     "/zero_optimization/zero_quantized_gradients"},
    {R"({"zero_optimization":{"leaf_module":{"names":[1]}}})",
     "/zero_optimization/leaf_module/names/0"},
    {R"({"data_efficiency":{"a":{"enabled":false},"b":{"enabled":true}}})", "/data_efficiency"},
    {R"({"data_efficiency":{"a":{"enabled":true},"b":{"enabled":false}}})", "/data_efficiency"},
    {R"({"zero_optimization":{"stage":1,"stage":2}})", "/zero_optimization/stage"},
    {R"({"zero_optimization":{"stage":1}} {})", "generated"},
    {R"({"fp16":7})", "/fp16"},
    {R"({"optimizer":{"type":"SGD","params":{"betas":[0.5,0.5]}}})", "/optimizer/params/betas"},
    {R"({"zero_optimization":{"stage":1e40}})", "/zero_optimization/stage"},
    {R"({"sparse_gradients":true})", "/sparse_gradients"},
    {R"({"amp":{"enabled":true}})", "/amp: unsupported_combination"},
    {R"({"pipeline":{"stages":2}})", "/pipeline/stages"},
    {R"({"tensor_parallel":{"autotp_size":2}})", "/tensor_parallel/autotp_size"},
    {R"({"compile":{"deepcompile":true}})", "/compile/deepcompile"},
    {R"({"fp16":{"loss_scale":-1}})", "/fp16/loss_scale"},
    {R"({"fp16":{"loss_scale_window":0}})", "/fp16/loss_scale_window"},
    {R"({"fp16":{"hysteresis":0}})", "/fp16/hysteresis"},
    {R"({"fp16":{"initial_scale_power":1024}})", "/fp16/initial_scale_power"},
    {R"({"fp16":{"min_loss_scale":0}})", "/fp16/min_loss_scale"},
    {R"({"torch_autocast":{"dtype":"fp32"}})", "/torch_autocast/dtype"},
    {R"({"communication_data_type":"int8"})", "/communication_data_type"},
    {R"({"gradient_allreduce_op":"max"})", "/gradient_allreduce_op"},
    {R"({"gradient_clipping":true})", "/gradient_clipping"},
    {R"({"gradient_accumulation_steps":1.5})", "/gradient_accumulation_steps"},
    {R"({"train_batch_size":0})", "/train_batch_size"},
    {R"({"optimizer":{}})", "/optimizer/type"},
    {R"({"optimizer":{"type":"Lion"}})", "/optimizer/type"},
    {R"({"optimizer":{"type":"Adam","params":{"betas":[0.9]}}})", "/optimizer/params/betas"},
    {R"({"optimizer":{"type":"Adam","params":{"betas":[1,0.9]}}})", "/optimizer/params/betas"},
    {R"({"optimizer":{"type":"Adam","params":{"amsgrad":true}}})", "/optimizer/params/amsgrad"},
    {R"({"optimizer":{"type":"Adam","params":{"momentum":0.5}}})", "/optimizer/params/momentum"},
    {R"({"optimizer":{"type":"SGD","params":{"max_grad_norm":1}}})",
     "/optimizer/params/max_grad_norm"},
    {R"({"optimizer":{"type":"Adam","params":{"bias_correction":false}}})",
     "/optimizer/params/bias_correction"},
    {R"({"optimizer":{"type":"SGD","params":{"nesterov":true}}})", "/optimizer/params/nesterov"},
};

// Samples of a window, of a forward, and forwards of a window; 0: not said.
struct Batch {
  std::int64_t train = 0;
  std::int64_t micro = 0;
  std::int64_t steps = 0;
};

// What is not said is 1, unless the whole says it; 0: it says something else.
std::int64_t rest_of(const Batch& said, std::int64_t ranks, std::int64_t left) {
  const std::int64_t known = ranks * left;
  return said.train % known == 0 ? said.train / known : 0;
}

Batch sized(const Batch& said, std::int64_t ranks) {
  Batch then = {said.train, std::max<std::int64_t>(said.micro, 1),
                std::max<std::int64_t>(said.steps, 1)};
  if (said.train == 0) return then;
  if (said.micro == 0)
    then.micro = rest_of(said, ranks, then.steps);
  else if (said.steps == 0)
    then.steps = rest_of(said, ranks, then.micro);
  return then.micro * then.steps * ranks == said.train ? then : Batch{};
}

Result<ParsedConfig> read(const std::string& document) {
  return parse_ds_config(document, "generated");
}

bool holds(const Synonym& row) {
  const auto given = read(row.given);
  const auto plain = read(row.plain);
  return given && plain && config_document(given->config) == config_document(plain->config);
}

bool holds(const RefusedDocument& row) {
  const auto given = read(row.given);
  return !given && given.error().text.find(row.place) != std::string::npos;
}

bool holds(const Batch& row, std::int64_t ranks) {
  const auto said = [](std::int64_t size) {
    return size == 0 ? std::nullopt : std::optional(size);
  };
  ParsedConfig parsed;
  parsed.batch_sizes = {said(row.train), said(row.micro), said(row.steps)};
  parsed.config.train_micro_batch_size_per_gpu = std::max<std::int64_t>(row.micro, 1);
  parsed.config.gradient_accumulation_steps = std::max<std::int64_t>(row.steps, 1);
  const auto read = with_batch_sizes(parsed, ranks);
  const Batch then = sized(row, ranks);
  if (!read) return then.micro == 0;
  return read->train_micro_batch_size_per_gpu == then.micro &&
         read->gradient_accumulation_steps == then.steps;
}

bool holds_for_each_size(std::int64_t ranks) {
  for (std::int64_t train = 0; train <= 16; ++train)
    for (std::int64_t micro = 0; micro <= 4; ++micro)
      for (std::int64_t steps = 0; steps <= 4; ++steps)
        if (!holds({train, micro, steps}, ranks)) return false;
  return true;
}

// What nothing here models is said to be ignored.
bool tells_ignored() {
  const auto parsed = read(R"({"wall_clock_breakdown":true,"zero_optimization":{"stage":1,
      "load_from_fp32_weights":true},"gradient_clipping":1})");
  return parsed &&
         parsed->ignored == std::vector<std::string>{"/wall_clock_breakdown",
                                                     "/zero_optimization/load_from_fp32_weights"};
}

template <class Row, std::size_t size>
bool hold_in(const Row (&rows)[size], int part) {
  for (std::size_t i = static_cast<std::size_t>(part) - 1; i < size; i += kReadingParts)
    if (!holds(rows[i])) return false;
  return true;
}

}  // namespace

bool reads_all_of(int part) {
  ZP_CHECK(part >= 1 && part <= kReadingParts, "a part that is none");
  const auto at = static_cast<std::size_t>(part) - 1;
  return hold_in(kSynonyms, part) && hold_in(kRefusedDocuments, part) && tells_ignored() &&
         holds_for_each_size(part) && holds_for_each_key(at, kReadingParts);
}

}  // namespace zeroproof::train
