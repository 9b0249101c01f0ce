#include "engine/engine_error.h"

#include <fmt/format.h>

#include <array>

namespace zeroproof {
namespace {

constexpr std::array<std::string_view, 36> kNames = {
    "E1",  "E2",  "E3",  "E4",  "E5",  "E6",  "E7",  "E8",  "E9",  "E10", "E11", "E12",
    "E13", "E14", "E15", "E16", "E17", "E18", "E19", "E20", "E21", "E22", "E23", "E24",
    "E25", "E26", "F1",  "F2",  "F3",  "F4",  "F5",  "F6",  "F7",  "F8",  "F9",  "F10"};
static_assert(static_cast<std::size_t>(EngineErrorId::f10) + 1 == kNames.size());

}  // namespace

std::string_view engine_error_name(EngineErrorId id) {
  return kNames[static_cast<std::size_t>(id)];
}

EngineError::EngineError(EngineErrorId id, const std::string& text)
    : UsageError(fmt::format("{}: {}", engine_error_name(id), text)), id_(id) {}

}  // namespace zeroproof
