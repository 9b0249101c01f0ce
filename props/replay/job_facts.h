#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/record.h"

namespace zeroproof {

// A parameter as its record declares it.
struct ParamFact {
  std::int64_t model = 0;  // its number among the recorded models
  std::int64_t bytes = 0;
  std::int64_t dimensions = 0;
  bool requires_grad = true;
  bool is_late = false;  // declared after gradients had formed
};

// What the records of one file say beside its events. The last record of an object counts.
struct JobFacts {
  std::map<std::string, ParamFact, std::less<>> params;
  std::map<std::int64_t, WrapperRecord> wrappers;      // by model
  std::map<std::int64_t, OptimizerRecord> optimizers;  // by id
  std::map<std::string, GroupRecord, std::less<>> groups;
  std::vector<NoteRecord> notes;
  std::set<std::string, std::less<>> hand_reduced;  // see HandReductions
  std::string hand_group;                           // on which
  std::int32_t world = 1;
  bool tells_closures = false;  // hooktrace 1.1: opt.step stands after the closure
  bool is_of_recorder = false;  // recorded by zeroproof_recorder
  bool has_begun = false;       // a gradient has formed

  JobFacts() = default;
  explicit JobFacts(const HeaderRecord& header);

  void declare(const ParamRecord& param);
  void declare(const NoteRecord& note) { notes.push_back(note); }
  void declare(const WrapperRecord& wrapper) { wrappers[wrapper.model] = wrapper; }
  void declare(const OptimizerRecord& optimizer) { optimizers[optimizer.id] = optimizer; }
  void declare(const GroupRecord& group) { groups[group.name] = group; }

  // Null when no record describes it.
  const ParamFact* find(std::string_view param) const;
  const WrapperRecord* wrapper_of(std::string_view param) const;
  // Ranks that a collective of the group joins; the world where the group is not described.
  std::int64_t group_size(std::string_view group) const;
};

// The number of the model that a parameter or module name begins with: 2 of "model2.l1.weight", 0
// without such a prefix.
std::int64_t model_of(std::string_view name);

}  // namespace zeroproof
