#include "props/foreign/dump_finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

bool all_wait_in(const std::vector<std::int32_t>& accused, const DumpFinding& other) {
  return !accused.empty() &&
         std::includes(other.waiting.begin(), other.waiting.end(), accused.begin(), accused.end());
}

class CauseOrder {
 public:
  explicit CauseOrder(std::vector<DumpFinding> findings) : findings_(std::move(findings)) {}

  std::vector<Diagnosis> run() {
    std::vector<std::optional<std::size_t>> cause(findings_.size());
    for (std::size_t at = 0; at < findings_.size(); ++at) cause[at] = root_of(at);
    for (std::size_t at = 0; at < findings_.size(); ++at)
      if (cause[at]) make_consequence(findings_[at], findings_[*cause[at]]);
    std::vector<Diagnosis> ordered;
    for (DumpFinding& finding : findings_) ordered.push_back(std::move(finding.diagnosis));
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Diagnosis& a, const Diagnosis& b) { return a.gravity < b.gravity; });
    return ordered;
  }

 private:
  // The finding at the end of the chain of waits; none for a cause and for a circle.
  std::optional<std::size_t> root_of(std::size_t start) const {
    std::optional<std::size_t> at = next_of(start);
    std::optional<std::size_t> last;
    for (std::size_t steps = 0; at && steps <= findings_.size(); ++steps) {
      if (*at == start) return std::nullopt;
      last = at;
      at = next_of(*at);
    }
    return last;
  }

  std::optional<std::size_t> next_of(std::size_t at) const {
    for (std::size_t other = 0; other < findings_.size(); ++other)
      if (other != at && all_wait_in(findings_[at].accused, findings_[other])) return other;
    return std::nullopt;
  }

  static void make_consequence(DumpFinding& finding, const DumpFinding& cause) {
    Diagnosis& one = finding.diagnosis;
    one.kind = "collective.held_up";
    one.gravity = Gravity::hazard;
    one.what +=
        fmt::format("; this is a consequence: {} cannot come, see {} ({})",
                    rank_words(finding.accused), cause.diagnosis.kind, cause.diagnosis.collective);
    one.look_at = "the cause, which is named first";
  }

  std::vector<DumpFinding> findings_;
};

}  // namespace

std::vector<Diagnosis> causes_first(std::vector<DumpFinding> findings) {
  return CauseOrder(std::move(findings)).run();
}

}  // namespace zeroproof
