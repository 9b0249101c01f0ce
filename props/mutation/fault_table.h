#pragma once

#include <span>
#include <string_view>

namespace zeroproof::mutation {

// One fault as props/mutation/faults/*.faults has it. Plain data, static.
struct WovenFault {
  int number = 0;  // what active_fault() returns while it is active; from 1
  std::string_view id;
  std::string_view sentence;
  bool is_woven = false;  // changes the engine's code
  std::string_view properties;
  std::string_view policy = "exact";
  std::string_view quirks = "none";
  std::string_view api = "full";
  std::string_view larger;
  std::string_view decorator;
  std::string_view reason;
};

// All of them, in the order of their ids and numbers. Generated (weaver/weave.py).
std::span<const WovenFault> fault_table();

}  // namespace zeroproof::mutation
