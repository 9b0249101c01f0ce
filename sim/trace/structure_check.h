#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"

namespace zeroproof {

// A record that breaks a rule of the format which a reader can live with.
struct StructureFinding {
  std::string rule;  // stable id: "graph_task.open", …
  std::uint64_t line_number = 0;
  std::uint64_t lc = 0;  // 0: not an event
  std::string text;
};

// Checks docs/reference/trace_format.md section 10 over the records of one trace, as they come.
// What the reader guarantees (header first, required fields, increasing lc) is not checked again.
// Tolerated (section 5): module, cb and fn brackets that never close.
// Memory grows with what is open and declared, not with the length. Not thread-safe.
class StructureCheck {
 public:
  // `names` is the table of the records' reader; it must outlive the check.
  explicit StructureCheck(const NameTable& names) : names_(names) {}

  void on_record(const Record& record);

  // After the last record.
  void finish();

  // The first kMaxFindings of them, and how many there are.
  const std::vector<StructureFinding>& findings() const { return findings_; }
  std::uint64_t finding_count() const { return finding_count_; }

  static constexpr std::size_t kMaxFindings = 100;

 private:
  // The collective numbers of one group that were issued, as disjoint ranges [first, second]:
  // one range for numbers without gaps.
  class IssuedNumbers {
   public:
    bool contains(std::int64_t number) const;
    void add(std::int64_t number);

   private:
    std::map<std::int64_t, std::int64_t> ranges_;
  };

  void on_event(const HookEvent& event);
  void check_time(const HookEvent& event);
  void check_graph_task(const HookEvent& event);
  void check_transform(const HookEvent& event);
  void check_collective(const HookEvent& event);
  void check_param(const HookEvent& event);
  void report(std::string rule, std::string text);

  const NameTable& names_;
  std::uint64_t line_number_ = 0;
  std::uint64_t lc_ = 0;
  EndRecord seen_;
  bool has_end_ = false;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> last_time_ns_;  // rank, thread
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int64_t>> transforms_;
  std::multiset<std::int64_t> open_calls_;
  // By group, and whether they are point to point: sends and receives have numbers of their own.
  std::map<std::pair<NameId, bool>, IssuedNumbers> issued_;
  std::set<std::string, std::less<>> params_;
  std::vector<StructureFinding> findings_;
  std::uint64_t finding_count_ = 0;
};

}  // namespace zeroproof
