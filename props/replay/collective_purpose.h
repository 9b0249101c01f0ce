#pragma once

#include <string_view>
#include <vector>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// The parameters that a collective moves.
struct CollectivePurpose {
  std::vector<NameId> params;  // empty: not known
  bool is_certain = false;     // ranks may be compared by it; else it is only worth showing
  bool is_bucket = false;      // of DeepSpeed, whose stage 3 sorts it before it is reduced
};

// Follows the events of one file for what the next collective of each thread is for: its own
// parameters, a mark that names one, a gather, a released unit or a bucket just before it.
// Not thread-safe.
class PurposeTracker {
 public:
  void declare_param(NameId name);
  bool has_param(NameId name) const;

  void on_event(const HookEvent& event, const NameTable& names);
  // Call once for each coll.issue; what was announced is used up.
  CollectivePurpose take(const HookEvent& issue, const NameTable& names);

 private:
  struct Announced {
    std::vector<NameId> mark;
    std::vector<NameId> gather;
    std::vector<NameId> released;
    std::vector<NameId> flushed;
    std::vector<NameId> ready;
  };

  Announced& of_thread(std::int32_t thread);

  std::vector<Announced> threads_;
  std::vector<bool> is_param_;  // by NameId
};

}  // namespace zeroproof
