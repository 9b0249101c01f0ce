#pragma once

#include <optional>
#include <string>
#include <vector>

#include "props/subject/finding.h"
#include "props/subject/release_search.h"

namespace zeroproof {

// What one release said to a finding.
struct ReleaseTrial {
  std::string release;
  std::optional<subject::Presence> presence;  // empty: not tried
  std::string text;                           // what came, in a line
};

struct BisectDocument {
  std::string package;
  subject::SubjectFinding finding;
  std::vector<ReleaseTrial> trials;  // oldest first
  std::vector<subject::PresenceChange> changes;
};

// For people: the releases that were tried, then what brought the finding and what mended it.
std::string bisect_text(const BisectDocument& document);
// "zeroproof.bisect/1" of docs/reference/output.md, without a final line end.
std::string bisect_json(const BisectDocument& document);

}  // namespace zeroproof
