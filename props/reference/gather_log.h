#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "props/reference/part.h"

namespace zeroproof::reference {

// What a gather sends: one collective for each dtype, of the slices of all ranks, and none where
// values were kept. docs/spec/zero/stage3.md 3.1, precision.md 6.1.
class GatherLog final : public Part {
 public:
  using Part::Part;

  void on_event(const HookEvent& event) override;

  // Whether the gather that has just ended came without a collective.
  bool was_reclaimed() const { return is_reclaimed_; }
  // Whether an asynchronous gather has no end yet.
  bool has_outstanding() const { return !outstanding_.empty(); }

 private:
  using Collective = std::pair<NameId, std::int64_t>;  // group and number

  void begin(const HookEvent& event);
  void see_collective(const HookEvent& event);
  void see_end(const HookEvent& event);
  void judge(const HookEvent& event);

  std::vector<std::size_t> ids_;  // of the last gather
  std::set<std::size_t> waited_;  // of them: without an end
  bool is_open_ = false;
  bool is_reclaimed_ = false;
  std::int64_t pieces_ = 0;
  std::int64_t bytes_ = 0;
  std::set<Collective> outstanding_;
};

}  // namespace zeroproof::reference
