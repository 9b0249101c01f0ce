#include "props/subject/release_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "props/subject/child_process.h"
#include "zeroproof/internal/engine/release.h"

namespace zeroproof::subject {
namespace {

constexpr std::int64_t kLimitNs = 3'600'000'000'000;  // PyTorch is some gigabytes

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

}  // namespace

Result<std::vector<std::string>> EnvironmentMaker::lines_of(std::vector<std::string> words) const {
  words.insert(words.begin(), program_);
  const auto output = run_to_end(words, {}, {kLimitNs, should_stop_});
  if (!output) return tl::unexpected(output.error());
  if (output->exit_code != 0)
    return fail(ErrorCode::cannot_run,
                fmt::format("'{}': exit code {}; {}", fmt::join(words, " "), output->exit_code,
                            output->errors.empty() ? "it printed no text" : output->errors.back()));
  return parts_of(output->text, '\n');
}

Result<std::vector<std::string>> EnvironmentMaker::releases(const std::string& range) const {
  const std::size_t dots = range.find("..");
  if (dots == std::string::npos) return parts_of(range, ',');
  const auto first = Release::parse(range.substr(0, dots));
  const auto last = Release::parse(range.substr(dots + 2));
  if (!first) return tl::unexpected(first.error());
  if (!last) return tl::unexpected(last.error());
  auto all = lines_of({"releases", package_});
  if (!all) return all;
  std::erase_if(*all, [&](const std::string& text) {
    const auto release = Release::parse(text);
    return !release || !ReleaseRange{*first, *last}.contains(*release);
  });
  if (all->empty())
    return fail(ErrorCode::cannot_run,
                fmt::format("bisect: the package index names no release of {} in {}; --versions "
                            "0.18.9,0.19.8 needs no index",
                            package_, range));
  return all;
}

Result<ReleaseEnvironment> EnvironmentMaker::make(const std::string& release) const {
  std::vector<std::string> words = {"make", package_, release};
  if (!torch_.empty()) words.push_back(torch_);
  auto lines = lines_of(words);
  if (!lines) return tl::unexpected(lines.error());
  lines->resize(2);
  return ReleaseEnvironment{.python = lines->at(0), .python_path = lines->at(1)};
}

}  // namespace zeroproof::subject
