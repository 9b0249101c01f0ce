#include "props/replay/numbers_digest.h"

#include <algorithm>
#include <cmath>

#include "model/fnv1a.h"

namespace zeroproof {
namespace {

using Hashes = std::vector<std::optional<std::string>>;

// A sum, so that the order of the parameters does not count.
std::uint64_t entry_of(const std::string& param, const Hashes& hashes, std::size_t at) {
  if (at >= hashes.size()) return 0;
  return fnv1a(param + "=" + hashes[at].value_or("none"));
}

bool is_ignored(std::string_view param, const WrapperRecord& wrapper) {
  return std::any_of(wrapper.ignored.begin(), wrapper.ignored.end(), [&](const auto& ignored) {
    return param == ignored || param.ends_with("." + ignored);
  });
}

}  // namespace

bool is_replicated(std::string_view param, const JobFacts& facts, std::int64_t stage,
                   bool of_gradient) {
  const WrapperRecord* wrapper = facts.wrapper_of(param);
  if (wrapper == nullptr) return facts.hand_reduced.contains(param);
  if (!wrapper->is_understood || wrapper->size < 2) return false;
  if (is_ignored(param, *wrapper)) return false;
  if (wrapper->kind == "ddp") return true;
  // DeepSpeed's experts differ from rank to rank; stages 1 and 2 keep gradients of their part.
  const bool is_expert = param.find("deepspeed_experts") != std::string_view::npos;
  const std::int64_t stage_max = of_gradient ? -1 : 2;
  return wrapper->kind == "deepspeed" && !is_expert && stage >= 0 && stage <= stage_max;
}

void NumbersDigest::add(const NumbersRecord& record, const JobFacts& facts, std::int64_t stage) {
  if (records++ >= kStepsMax) return;
  NumbersStep step{
      .optimizer = record.optimizer, .step = record.step, .is_after_step = record.is_after_step};
  for (std::size_t at = 0; at < record.params.size(); ++at) {
    const std::string& param = record.params[at];
    if (is_replicated(param, facts, stage, false))
      step.params += entry_of(param, record.param_hashes, at);
    if (is_replicated(param, facts, stage, true))
      step.grads += entry_of(param, record.grad_hashes, at);
    step.all_grads += entry_of(param, record.grad_hashes, at);
    const double norm = at < record.grad_norms.size() ? record.grad_norms[at].value_or(0) : 0;
    step.grad_norm += norm * norm;
  }
  step.grad_norm = std::sqrt(step.grad_norm);
  steps.push_back(step);
}

}  // namespace zeroproof
