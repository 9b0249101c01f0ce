#include "props/foreign/dump_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "props/foreign/pickle.h"
#include "sim/trace/byte_source.h"
#include "sim/trace/json_document.h"

namespace zeroproof {
namespace {

constexpr std::size_t kPeekedBytes = 64 << 10;
constexpr std::size_t kLongHeadBytes = 8 << 20;

// Members of the outermost object that identify a format.
struct FormatKey {
  std::string_view key;
  DumpFormat format;
};

constexpr FormatKey kKeys[] = {
    {"traceEvents", DumpFormat::kineto},
    {"distributedInfo", DumpFormat::kineto},
    {"deviceProperties", DumpFormat::kineto},
    {"schemaVersion", DumpFormat::kineto},
    {"entries", DumpFormat::flight_recorder_json},
    {"pg_config", DumpFormat::flight_recorder_json},
    {"pg_status", DumpFormat::flight_recorder_json},
    {"nccl_comm_state", DumpFormat::flight_recorder_json},
    {"comm_lib_version", DumpFormat::flight_recorder_json},
    {"nccl_version", DumpFormat::flight_recorder_json},
};

std::optional<DumpFormat> format_by_keys(std::string_view first_bytes) {
  const std::string keys = "\n" + json_keys(first_bytes);
  for (const FormatKey& known : kKeys)
    if (keys.find(fmt::format("\n{}\n", known.key)) != std::string::npos) return known.format;
  return std::nullopt;
}

bool begins_object(std::string_view bytes) {
  const std::size_t begin = bytes.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && bytes[begin] == '{';
}

std::string_view format_words(DumpFormat format) {
  constexpr std::array<std::string_view, 3> kWords = {"a flight-recorder dump (JSON)",
                                                      "a flight-recorder dump (pickle)",
                                                      "a Kineto trace (torch.profiler)"};
  return kWords[static_cast<std::size_t>(format)];
}

}  // namespace

std::string_view dump_format_name(DumpFormat format) {
  constexpr std::array<std::string_view, 3> kNames = {"flight_recorder_json",
                                                      "flight_recorder_pickle", "kineto"};
  return kNames[static_cast<std::size_t>(format)];
}

std::optional<DumpFormat> dump_format_of(std::string_view first) {
  if (starts_like_pickle(first)) return DumpFormat::flight_recorder_pickle;
  const std::size_t begin = first.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view line = first.substr(begin, first.find('\n', begin) - begin);
  const bool is_hooktrace = line.find("\"rec\"") != std::string_view::npos;
  if (first[begin] == '{') return is_hooktrace ? std::nullopt : format_by_keys(first);
  const bool is_slices = first[begin] == '[' && first.find("\"ph\"") != std::string_view::npos;
  return is_slices ? std::optional(DumpFormat::kineto) : std::nullopt;
}

std::optional<DumpFormat> dump_format_of_file(const std::string& path) {
  const auto first = peek_file(path, kPeekedBytes);
  if (!first) return std::nullopt;
  const auto format = dump_format_of(*first);
  const bool may_come_later = first->size() == kPeekedBytes && begins_object(*first) &&
                              first->find("\"rec\"") == std::string::npos;
  if (format || !may_come_later) return format;
  const auto more = peek_file(path, kLongHeadBytes);
  return more ? dump_format_of(*more) : std::nullopt;
}

Result<void> refuse_dump(const std::string& path) {
  const auto format = dump_format_of_file(path);
  if (!format) return {};
  return fail(ErrorCode::unreadable,
              fmt::format("{}: this is {} and no hooktrace; `zeroproof replay` reads it", path,
                          format_words(*format)));
}

std::int32_t rank_in_name(std::string_view path) {
  if (path.starts_with("/dev/")) return -1;  // the number of a pipe
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto digits_at = [&](std::size_t begin) -> std::int32_t {
    std::int64_t value = -1;
    for (std::size_t at = begin; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at) {
      value = std::max<std::int64_t>(value, 0) * 10 + (name[at] - '0');
      if (value > 1'000'000) return -1;
    }
    return static_cast<std::int32_t>(value);
  };
  const std::size_t word = name.rfind("rank");
  if (word != std::string_view::npos) {
    const std::size_t begin = word + 4;
    const bool has_separator = begin < name.size() && (name[begin] == '_' || name[begin] == '-');
    const std::int32_t rank = digits_at(begin + (has_separator ? 1 : 0));
    if (rank >= 0) return rank;
  }
  const std::string_view stem = name.substr(0, name.find('.'));
  std::size_t begin = stem.size();
  while (begin > 0 && stem[begin - 1] >= '0' && stem[begin - 1] <= '9') --begin;
  return begin == stem.size() ? -1 : digits_at(begin);
}

}  // namespace zeroproof
