#include "props/replay/job_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace zeroproof {
namespace {

constexpr std::string_view kPrefix = "model";

constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> kWidths = {{
    {"float64", 8},
    {"float32", 4},
    {"bfloat16", 2},
    {"float16", 2},
    {"complex64", 8},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
    {"uint8", 1},
}};

std::int64_t width_of(std::string_view dtype) {
  for (const auto& [name, width] : kWidths)
    if (name == dtype) return width;
  return 4;
}

// The number of a model that stands before the names of its parameters.
std::optional<std::int64_t> numbered_prefix(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kPrefix.size(), end, number);
  const bool has_number = read.ec == std::errc() && read.ptr != end && *read.ptr == '.';
  return has_number ? std::optional(number) : std::nullopt;
}

}  // namespace

JobFacts::JobFacts(const HeaderRecord& header)
    : world(header.world), tells_closures(header.version[1] >= 1) {
  for (const auto& [key, value] : header.producer)
    if (key == "tool") is_of_recorder = value.value_or("").starts_with("zeroproof-rec");
}

void JobFacts::declare(const ParamRecord& param) {
  ParamFact fact{
      .model = model_of(param.name), .requires_grad = param.requires_grad, .is_late = has_begun};
  fact.bytes = width_of(param.dtype);
  for (const std::int64_t size : param.shape) fact.bytes *= size;
  fact.dimensions = static_cast<std::int64_t>(param.shape.size());
  params.insert_or_assign(param.name, fact);
}

const ParamFact* JobFacts::find(std::string_view param) const {
  const auto known = params.find(param);
  return known == params.end() ? nullptr : &known->second;
}

// One model has names without a prefix: that of whose number no name begins.
const WrapperRecord* JobFacts::wrapper_of(std::string_view param) const {
  const auto own = numbered_prefix(param);
  const auto wrapper = std::find_if(wrappers.begin(), wrappers.end(), [&](const auto& entry) {
    if (own) return entry.first == *own;
    const std::string prefix = fmt::format("{}{}.", kPrefix, entry.first);
    const auto first = params.lower_bound(prefix);
    return first == params.end() || !first->first.starts_with(prefix);
  });
  return wrapper == wrappers.end() ? nullptr : &wrapper->second;
}

std::int64_t JobFacts::group_size(std::string_view group) const {
  const auto known = groups.find(group);
  const bool has_ranks = known != groups.end() && known->second.ranks.has_value();
  return has_ranks ? static_cast<std::int64_t>(known->second.ranks->size()) : world;
}

std::int64_t model_of(std::string_view name) {
  return numbered_prefix(name).value_or(0);
}

}  // namespace zeroproof
