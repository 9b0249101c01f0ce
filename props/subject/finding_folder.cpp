#include "props/subject/finding_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/files/atomic_file.h"
#include "engine/files/small_file.h"

namespace zeroproof::subject {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr std::uint64_t kFileBytesMax = 1U << 24;
constexpr std::string_view kSearchPrefix = "search-";
constexpr std::string_view kSearchSchema = "zeroproof.subject_search/1";
constexpr std::string_view kFeaturesPrefix = "search-features-";
constexpr std::string_view kFeaturesSchema = "zeroproof.subject_features/1";

template <class Has>
Result<std::vector<std::string>> paths_of(const std::string& folder, const Has& has) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") && has(name)) paths.push_back(entry.path().string());
  }
  if (error) return fail(ErrorCode::unreadable, fmt::format("{}: {}", folder, error.message()));
  std::ranges::sort(paths);
  return paths;
}

Result<std::vector<std::string>> finding_paths(const std::string& folder) {
  return paths_of(folder, [](const std::string& name) { return !name.starts_with(kSearchPrefix); });
}

// Empty, where it is of other capabilities than those that are named.
Result<FeatureCounts> read_features(const std::string& path, std::string_view capabilities) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return FeatureCounts();
  const auto text = read_small_file(path, kFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  try {
    const OrderedJson document = OrderedJson::parse(*text);
    const bool is_other = document.at("capabilities") != capabilities;
    if (!capabilities.empty() && is_other) return FeatureCounts();
    return FeatureCounts(document.at("features").get<FeatureCounts::ByName>());
  } catch (const OrderedJson::exception& wrong) {
    return fail(ErrorCode::usage, fmt::format("{}: {}", path, wrong.what()));
  }
}

}  // namespace

Result<SubjectFinding> read_finding(const std::string& path) {
  const auto text = read_small_file(path, kFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  return parse_finding(*text, path);
}

// Other documents may lie beside them.
Result<std::vector<SubjectFinding>> read_findings(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    return read_finding(path).map([](SubjectFinding one) { return std::vector{std::move(one)}; });
  const auto paths = finding_paths(path);
  if (!paths) return tl::unexpected(paths.error());
  std::vector<SubjectFinding> findings;
  for (const std::string& file : *paths) {
    const auto text = read_small_file(file, kFileBytesMax);
    if (!text) return tl::unexpected(text.error());
    if (text->find(kFindingSchema) == std::string::npos) continue;
    auto finding = parse_finding(*text, file);
    if (!finding) return tl::unexpected(finding.error());
    findings.push_back(std::move(*finding));
  }
  return findings;
}

Result<FindingFolder> FindingFolder::open(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path, error))
    return fail(ErrorCode::usage, fmt::format("{}: cannot make this folder: {}", path,
                                              error ? error.message() : "a file has its name"));
  return FindingFolder(path);
}

std::string FindingFolder::file_of(const std::string& stem) const {
  return fmt::format("{}/{}.json", path_, stem);
}

Result<std::vector<SubjectFinding>> FindingFolder::load() const {
  return read_findings(path_);
}

Result<std::optional<SubjectFinding>> FindingFolder::find(const std::string& stem) const {
  const std::string path = file_of(stem);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::optional<SubjectFinding>();
  return read_finding(path).map([](SubjectFinding one) { return std::optional(std::move(one)); });
}

Result<void> FindingFolder::save(SubjectFinding& finding) const {
  const std::string stem = finding.file_stem();
  const auto there = find(stem);
  if (!there) return tl::unexpected(there.error());
  if (*there) finding = merged(**there, finding);
  return write_file_atomically(file_of(stem), finding_json(finding));
}

Result<SearchProgress> FindingFolder::progress(const std::string& search) const {
  const std::string path = fmt::format("{}/{}{}.json", path_, kSearchPrefix, search);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return SearchProgress{};
  const auto text = read_small_file(path, kFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  try {
    const OrderedJson document = OrderedJson::parse(*text);
    SearchProgress progress;
    document.at("next").get_to(progress.next);
    document.at("statuses").get_to(progress.statuses);
    document.at("seconds").get_to(progress.seconds);
    return progress;
  } catch (const OrderedJson::exception& wrong) {
    return fail(ErrorCode::usage, fmt::format("{}: {}", path, wrong.what()));
  }
}

Result<void> FindingFolder::save_progress(const std::string& search,
                                          const SearchProgress& progress) const {
  const OrderedJson document = {{"schema", kSearchSchema},
                                {"next", progress.next},
                                {"statuses", progress.statuses},
                                {"seconds", progress.seconds}};
  return write_file_atomically(fmt::format("{}/{}{}.json", path_, kSearchPrefix, search),
                               document.dump(1) + "\n");
}

Result<FeatureCounts> FindingFolder::features(const std::string& search) const {
  return read_features(fmt::format("{}/{}{}.json", path_, kFeaturesPrefix, search), "");
}

Result<FeatureCounts> FindingFolder::features_of_all(const std::string& capabilities) const {
  const auto paths =
      paths_of(path_, [](const std::string& name) { return name.starts_with(kFeaturesPrefix); });
  if (!paths) return tl::unexpected(paths.error());
  FeatureCounts all;
  for (const std::string& path : *paths) {
    auto counts = read_features(path, capabilities);
    if (!counts) return counts;
    all.add(*counts);
  }
  return all;
}

Result<void> FindingFolder::save_features(const std::string& search,
                                          const std::string& capabilities,
                                          const FeatureCounts& counts) const {
  const OrderedJson document = {
      {"schema", kFeaturesSchema}, {"capabilities", capabilities}, {"features", counts.by_name()}};
  return write_file_atomically(fmt::format("{}/{}{}.json", path_, kFeaturesPrefix, search),
                               document.dump(0) + "\n");
}

}  // namespace zeroproof::subject
