#include "engine/checkpoint/file_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/number_in.h"

namespace zeroproof {
namespace {

// Not std::isalnum: that one asks the locale.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::optional<int> number_of(std::string_view text, int base) {
  const auto number = number_in<int>(text, base);
  return number.value_or(-1) < 0 ? std::nullopt : number;
}

std::string place_suffix(const ParallelPlace& place) {
  if (place.tensor.size == 1 && place.expert.size == 1) return {};
  return fmt::format(".tp{}.ep{}", place.tensor.rank, place.expert.rank);
}

}  // namespace

std::string escaped_name(std::string_view name) {
  std::string escaped;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (is_plain(c) && !(i == 0 && c == '.')) {
      escaped.push_back(c);
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

std::optional<std::string> unescaped_name(std::string_view escaped) {
  std::string name;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '%') {
      name.push_back(escaped[i]);
      continue;
    }
    const auto code = number_of(escaped.substr(i + 1, 2), 16);
    if (!code) return std::nullopt;
    name.push_back(static_cast<char>(*code));
    i += 2;
  }
  // One spelling for each name.
  if (escaped_name(name) != escaped) return std::nullopt;
  return name;
}

std::string parameter_folder(std::string_view parameter) {
  return "zero/" + escaped_name(parameter);
}

std::string tensor_file(std::string_view parameter, std::string_view key,
                        const ParallelPlace& place) {
  return fmt::format("{}/{}{}.tensor", parameter_folder(parameter), escaped_name(key),
                     place_suffix(place));
}

std::string part_file(const ParallelPlace& place) {
  return fmt::format("part{}.json", place_suffix(place));
}

bool is_tag(std::string_view text) {
  return !text.empty() && text.front() != '.' && !text.starts_with(kLatestFile) &&
         std::ranges::all_of(text, is_plain);
}

std::string folder_name(const CheckpointName& name) {
  return name.generation == 1 ? name.tag : fmt::format("{}~{}", name.tag, name.generation);
}

std::optional<CheckpointName> checkpoint_name(std::string_view folder) {
  const std::size_t tilde = folder.find('~');
  CheckpointName name{.tag = std::string(folder.substr(0, tilde))};
  if (tilde != folder.npos) name.generation = number_of(folder.substr(tilde + 1), 10).value_or(0);
  const bool is_name = is_tag(name.tag) && name.generation > 0 && folder_name(name) == folder;
  return is_name ? std::optional(name) : std::nullopt;
}

}  // namespace zeroproof
