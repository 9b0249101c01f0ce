#include "props/foreign/flight_entry.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace zeroproof {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kNumberMax = std::int64_t{1} << 53;

struct WrongField {
  std::string text;
};

[[noreturn]] void wrong(const char* key, const char* wanted, const Json& found) {
  throw WrongField{fmt::format("{}: {} is expected, there is {}", key, wanted, found.type_name())};
}

std::string text_of(const Json& entry, const char* key, bool is_required) {
  const auto at = entry.find(key);
  if (at == entry.end() || at->is_null()) {
    if (is_required) throw WrongField{fmt::format("{} is missing", key)};
    return {};
  }
  if (!at->is_string()) wrong(key, "a string", *at);
  return at->get<std::string>();
}

std::int64_t integer_of(const Json& entry, const char* key, bool is_required) {
  const auto at = entry.find(key);
  if (at == entry.end() || at->is_null()) {
    if (is_required) throw WrongField{fmt::format("{} is missing", key)};
    return -1;
  }
  if (!at->is_number_integer()) wrong(key, "an integer", *at);
  return at->get<std::int64_t>();
}

std::vector<std::vector<std::int64_t>> sizes_of(const Json& entry, const char* key) {
  std::vector<std::vector<std::int64_t>> sizes;
  const auto at = entry.find(key);
  if (at == entry.end() || at->is_null()) return sizes;
  if (!at->is_array()) wrong(key, "a list of sizes", *at);
  for (const Json& tensor : *at) {
    if (!tensor.is_array()) wrong(key, "a list of sizes", tensor);
    auto& one = sizes.emplace_back();
    for (const Json& size : tensor) {
      if (!size.is_number_integer()) wrong(key, "an integer", size);
      one.push_back(size.get<std::int64_t>());
    }
  }
  return sizes;
}

std::vector<std::string> words_of(const Json& entry, const char* key) {
  std::vector<std::string> words;
  const auto at = entry.find(key);
  if (at == entry.end() || at->is_null()) return words;
  if (!at->is_array()) wrong(key, "a list of strings", *at);
  for (const Json& word : *at) {
    if (!word.is_string()) wrong(key, "a string", word);
    words.push_back(word.get<std::string>());
  }
  return words;
}

// "nccl:send 0->1": the operation and the two ends.
void take_name(const std::string& profiling_name, DumpedCollective& out) {
  const std::string name = profiling_name.substr(profiling_name.find(':') + 1);
  const std::size_t blank = name.find(' ');
  out.op = name.substr(0, blank);
  if (!out.is_point_to_point() || blank == std::string::npos) return;
  const char* const arrow = out.op == "send" ? "->" : "<-";
  const std::size_t at = name.find(arrow, blank);
  if (at == std::string::npos) throw WrongField{"profiling_name: " + profiling_name};
  const auto number = [&](std::size_t begin, std::size_t end) {
    std::int32_t value = -1;
    std::from_chars(name.data() + begin, name.data() + std::min(end, name.size()), value);
    return value;
  };
  const std::int32_t left = number(blank + 1, at);
  const std::int32_t right = number(at + 2, name.size());
  out.peer_from = out.op == "send" ? left : right;
  out.peer_to = out.op == "send" ? right : left;
}

std::string group_of(const Json& entry) {
  const auto group = entry.find("process_group");
  if (group == entry.end() || group->is_null()) {
    const std::int64_t id = integer_of(entry, "pg_id", false);
    return id < 0 ? "0" : fmt::format("{}", id);
  }
  if (!group->is_array() || group->empty() || !(*group)[0].is_string())
    wrong("process_group", "a pair of strings", *group);
  return (*group)[0].get<std::string>();
}

// The innermost frame that is not PyTorch's own.
std::string frame_of(const Json& entry) {
  const auto frames = entry.find("frames");
  if (frames == entry.end() || !frames->is_array()) return {};
  for (const Json& frame : *frames) {
    if (!frame.is_object()) continue;
    const std::string file = text_of(frame, "filename", false);
    const bool is_library = file.find("/torch/") != std::string::npos || file.starts_with("??");
    if (file.empty() || is_library) continue;
    return fmt::format("{}:{} {}", file, integer_of(frame, "line", false),
                       text_of(frame, "name", false));
  }
  return {};
}

std::vector<std::int32_t> ranks_of(const Json& config) {
  std::vector<std::int32_t> ranks;
  const auto at = config.find("ranks");
  if (at == config.end()) return ranks;
  const Json list = at->is_string() ? Json::parse(at->get<std::string>(), nullptr, false) : *at;
  if (!list.is_array()) return ranks;
  for (const Json& rank : list)
    if (rank.is_number_integer()) ranks.push_back(rank.get<std::int32_t>());
  return ranks;
}

}  // namespace

tl::expected<DumpedCollective, std::string> flight_entry(const Json& entry) {
  try {
    if (!entry.is_object()) wrong("entry", "an object", entry);
    DumpedCollective out;
    take_name(text_of(entry, "profiling_name", true), out);
    out.group = group_of(entry);
    out.number =
        integer_of(entry, out.is_point_to_point() ? "p2p_seq_id" : "collective_seq_id", true);
    if (out.number < 0 || out.number > kNumberMax)
      throw WrongField{fmt::format("sequence number {} is out of range", out.number)};
    out.input_sizes = sizes_of(entry, "input_sizes");
    out.output_sizes = sizes_of(entry, "output_sizes");
    out.input_dtypes = words_of(entry, "input_dtypes");
    out.output_dtypes = words_of(entry, "output_dtypes");
    out.state = text_of(entry, "state", false);
    const auto retired = entry.find("retired");
    out.is_retired = retired != entry.end() && retired->is_boolean() && retired->get<bool>();
    out.frame = frame_of(entry);
    return out;
  } catch (const WrongField& field) {
    return tl::unexpected(field.text);
  }
}

void take_flight_head(const Json& head, RankDump& dump) {
  const auto version = head.find("version");
  if (version != head.end() && version->is_string()) dump.version = version->get<std::string>();
  const auto config = head.find("pg_config");
  if (config == head.end() || !config->is_object()) return;
  for (const auto& [name, one] : config->items())
    if (one.is_object()) dump.groups[name] = ranks_of(one);
}

}  // namespace zeroproof
