#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "props/subject/feature_counts.h"
#include "props/subject/finding.h"
#include "zeroproof/model/result.h"

namespace zeroproof::subject {

// How far one search of a folder got.
struct SearchProgress {
  std::uint64_t next = 0;                         // the number of the next case
  std::map<std::string, std::uint64_t> statuses;  // cases so far, by what became of them
  double seconds = 0.0;
};

// A folder with a file for each signature, STEM.json, and one for each search, which several
// processes may share: files appear whole, and what another process wrote is merged. Errors name
// the file.
class FindingFolder {
 public:
  // Makes the folder where there is none.
  static Result<FindingFolder> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string file_of(const std::string& stem) const;

  // In the order of their files' names.
  Result<std::vector<SubjectFinding>> load() const;
  // What the folder has of this signature.
  Result<std::optional<SubjectFinding>> find(const std::string& stem) const;
  // Merges it with what is there, which becomes `finding`.
  Result<void> save(SubjectFinding& finding) const;

  // `search` is a name of letters, digits and dashes.
  Result<SearchProgress> progress(const std::string& search) const;
  Result<void> save_progress(const std::string& search, const SearchProgress& progress) const;

  // What the programs of a search had, and those of all searches for the same capabilities.
  Result<FeatureCounts> features(const std::string& search) const;
  Result<FeatureCounts> features_of_all(const std::string& capabilities) const;
  Result<void> save_features(const std::string& search, const std::string& capabilities,
                             const FeatureCounts& counts) const;

 private:
  explicit FindingFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The finding of a file.
Result<SubjectFinding> read_finding(const std::string& path);
// Of a file, or of each file of a folder that is one.
Result<std::vector<SubjectFinding>> read_findings(const std::string& path);

}  // namespace zeroproof::subject
