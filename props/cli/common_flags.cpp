#include "props/cli/common_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <limits>

namespace zeroproof {
namespace {

std::uint64_t scale_of(char suffix) {
  switch (suffix) {
    case 'k':
      return 1'000;
    case 'M':
      return 1'000'000;
    case 'G':
      return 1'000'000'000;
    default:
      return 1;
  }
}

bool is_in_github_actions() {
  const char* const value = std::getenv("GITHUB_ACTIONS");
  return value != nullptr && std::string_view(value) == "true";
}

}  // namespace

Result<std::uint64_t> parse_count(std::string_view text, std::string_view what) {
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  std::string_view digits = is_hexadecimal ? text.substr(2) : text;
  const std::uint64_t scale = is_hexadecimal || digits.empty() ? 1 : scale_of(digits.back());
  if (scale != 1) digits.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                            is_hexadecimal ? 16 : 10);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() ||
      value > std::numeric_limits<std::uint64_t>::max() / scale) {
    return fail(ErrorCode::usage,
                fmt::format("{}: '{}' is not a count: write 250, 10k, 1M or 0x1f", what, text));
  }
  return value * scale;
}

void CommonFlagWords::declare(Flags& flags) {
  flags.begin_group("flags of every verb");
  flags.add_value("seed", seed_, {"N", "seed of every random choice (default 0); decimal or 0x"});
  flags.add_switch("json", given_.wants_json, "print one JSON document instead of text");
  flags.add_value("junit", given_.junit_path, {"FILE", "also write a JUnit report"});
  flags.add_value("sarif", given_.sarif_path, {"FILE", "also write the findings as SARIF 2.1.0"});
  flags.add_value("annotations", annotations_,
                  {"FOR",
                   "github writes findings as annotations to stderr; auto (default) does so when "
                   "GITHUB_ACTIONS=true; none does not",
                   {"auto", "github", "none"}});
  flags.add_value("out", given_.out_dir, {"DIR", "also write the results into this folder"});
  flags.add_value("color", color_,
                  {"WHEN", "colour: auto, always or never", {"auto", "always", "never"}});
  flags.add_value("progress", progress_,
                  {"HOW", "progress on stderr: auto, line or none", {"auto", "line", "none"}});
  flags.add_switch("help", given_.wants_help, "print this page");
}

Result<CommonFlags> CommonFlagWords::values() const {
  CommonFlags values = given_;
  const auto seed = parse_count(seed_, "--seed");
  if (!seed) return tl::unexpected(seed.error());
  values.seed = *seed;
  values.has_annotations =
      annotations_ == "github" || (annotations_ == "auto" && is_in_github_actions());
  values.color = color_choice_of(color_).value_or(ColorChoice::automatic);
  values.progress = progress_mode_of(progress_).value_or(ProgressMode::automatic);
  return values;
}

}  // namespace zeroproof
