#include "props/replay/framework.h"

#include <array>

namespace zeroproof {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"plain", "ddp", "fsdp2", "deepspeed"};

}  // namespace

std::string_view framework_name(Framework framework) {
  return kNames[static_cast<std::size_t>(framework)];
}

FrameworkFinder::FrameworkFinder(const HeaderRecord& header) {
  for (const auto& [key, value] : header.producer) {
    const bool is_used = value && !value->empty() && *value != "none";
    if (key == "deepspeed" && is_used) settle(Framework::deepspeed);
    if (key != "framework" || !value) continue;
    for (std::size_t at = 0; at < kNames.size(); ++at)
      if (*value == kNames[at]) settle(static_cast<Framework>(at));
  }
  if (header.stage) settle(Framework::deepspeed);
}

void FrameworkFinder::look_at(const HookEvent& event, const NameTable& names) {
  const std::string_view name = names.text(event.name);
  if (event.kind == EventKind::bucket_ready) return settle(Framework::ddp);
  if (event.kind == EventKind::mark) {
    if (name == "ddp.no_sync") return settle(Framework::ddp);
    if (name.starts_with("pre_bwd:")) return settle(Framework::fsdp2);
  }
  if (event.kind != EventKind::engine_call) return;
  if (name.starts_with("fsdp2.")) return settle(Framework::fsdp2);
  if (name.starts_with("engine.") || name.starts_with("z12.") || name.starts_with("z3."))
    settle(Framework::deepspeed);
}

void FrameworkFinder::settle(Framework framework) {
  framework_ = framework;
  is_certain_ = true;
}

}  // namespace zeroproof
