#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "props/replay/diagnosis.h"

namespace zeroproof {

// A diagnosis before it is reported: one for all its places.
struct Draft {
  std::string run;
  Diagnosis diagnosis;
  std::size_t trace = 0;            // of the first place
  std::uint64_t lc = 0;             // of the first place; 0: none
  std::uint64_t count = 1;          // places
  bool wants_context = false;       // diagnosis.order is not filled yet
  bool is_of_peers = false;         // an exception that says that another rank has gone
  bool is_after_exception = false;  // a finding about what an exception left unfinished
};

}  // namespace zeroproof
