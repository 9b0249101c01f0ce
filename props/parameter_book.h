#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/internal/props/method.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Where the full values of a stage 3 parameter are (docs/spec/zero.md 3.1).
enum class Residence : std::uint8_t { unknown, not_available, inflight, available };

// The parameters of stage 3 as far as the events of one rank show; those that the recording has no
// name for are left out, since several share one word. A parameter belongs to the
// module whose name its own begins with, or to the leaf module around that (docs/spec/zero.md 3.7),
// and to those it was registered with (docs/spec/zero.md 3.8). Memory is bounded by the number of
// parameters and modules.
class ParameterBook {
 public:
  struct Parameter {
    Residence residence = Residence::unknown;
    bool is_persistent = false;
    bool is_external = false;
    std::int64_t numel = -1;  // -1: not recorded
    std::string owner;
  };

  // `names` must outlive the book.
  explicit ParameterBook(const NameTable& names) : names_(&names) {}

  // Whether `apply` would read it; `method` is that of its name.
  static bool is_about(const HookEvent& event, Method method);
  void apply(const HookEvent& event, Method method);

  // Parameters were gathered by code that the recording does not bracket: what was partitioned may
  // be whole now.
  void note_unseen_gather();

  // Whether any parameter was seen to be gathered or partitioned.
  bool is_sharded() const { return is_sharded_; }
  const std::map<NameId, Parameter>& all() const { return parameters_; }
  // Null when no event named it.
  const Parameter* find(NameId param) const;
  Residence residence(NameId param) const;

  // Those it computes with; a leaf's are all below it.
  std::vector<NameId> of_module(NameId module) const;
  bool is_used_by(NameId param, NameId module) const;
  bool is_leaf(NameId module) const { return leaves_.contains(names_->text(module)); }
  const std::set<std::string, std::less<>>& leaves() const { return leaves_; }
  bool is_below(NameId param, std::string_view module) const;

  // A module that was fetched and not released, and uses the parameter; none when there is none.
  NameId holder(NameId param) const;
  // Whether a module around its own was fetched and not released: a leaf, if no event says of
  // leaves.
  bool is_below_held(NameId param) const;

  void append_state(std::string& bytes) const;

 private:
  Parameter& note(NameId param);
  void set(const std::vector<NameId>& params, Residence residence);
  void read_mark(const HookEvent& event);
  bool is_unnamed(NameId param) const;

  const NameTable* names_;
  std::map<NameId, Parameter> parameters_;
  std::map<std::string, std::vector<NameId>, std::less<>> owned_;  // by module
  std::set<std::string, std::less<>> leaves_;
  std::map<std::string, std::set<NameId>, std::less<>> external_;  // by module
  std::set<NameId> held_by_;                                       // modules: fetched, not released
  bool is_sharded_ = false;
};

}  // namespace zeroproof
