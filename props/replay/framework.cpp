#include "props/replay/framework.h"

#include <array>
#include <optional>

namespace zeroproof {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"plain", "ddp",     "fsdp2",  "deepspeed",
                                                    "fsdp1", "dtensor", "unknown"};

std::optional<Framework> find_framework(std::string_view name) {
  for (std::size_t at = 0; at < kNames.size(); ++at)
    if (name == kNames[at]) return static_cast<Framework>(at);
  return std::nullopt;
}

}  // namespace

std::string_view framework_name(Framework framework) {
  return kNames[static_cast<std::size_t>(framework)];
}

// DeepSpeed's version is in the header of every job that has imported it: another library may have.
FrameworkFinder::FrameworkFinder(const HeaderRecord& header) {
  bool is_told = false;
  for (const auto& [key, value] : header.producer) {
    const auto named = key == "framework" && value ? find_framework(*value) : std::nullopt;
    if (named && *named != Framework::plain) settle(*named);
    is_told = is_told || named.has_value();
  }
  for (const auto& [key, value] : header.producer)
    if (key == "deepspeed" && !is_told && value && !value->empty() && *value != "none")
      settle(Framework::deepspeed);
  if (header.stage) settle(Framework::deepspeed);
}

void FrameworkFinder::on_wrapper(const WrapperRecord& wrapper) {
  const auto named = find_framework(wrapper.kind);
  if (!named || is_wrapped_) return;
  is_wrapped_ = true;
  settle(*named);
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
