#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "props/foreign/rank_dump.h"

namespace zeroproof {

// Collects what the slices of a Kineto trace say about collectives and node order. Slices stand in
// the file in any order; `finish` sorts by their start.
class KinetoEvents {
 public:
  // One element of traceEvents; anything else than a slice of interest is passed over.
  void add(const nlohmann::json& event);

  // The collectives in the order of issuing (record_param_comms where the backend writes it, else
  // the calls of c10d), numbered per group from 1, and the nodes in the order of execution.
  void finish(RankDump& dump);

 private:
  struct Timed {
    double start_us = 0;
    DumpedCollective collective;
    DumpedNode node;
  };

  void add_node(const nlohmann::json& event, const std::string& name);
  void add_call(const nlohmann::json& event, const std::string& name);
  void add_comms(const nlohmann::json& event);

  std::vector<Timed> nodes_;
  std::vector<Timed> calls_;
  std::vector<Timed> comms_;
};

// The rest of a trace: distributedInfo.
void take_kineto_head(const nlohmann::json& head, RankDump& dump);

}  // namespace zeroproof
