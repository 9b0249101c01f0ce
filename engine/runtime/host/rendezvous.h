#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/runtime/host/collective.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::host {

// What ranks get that did not fail themselves: another one aborted the group.
class GroupAborted final : public RuntimeFault {
 public:
  using RuntimeFault::RuntimeFault;
};

// Where the ranks of one group meet for a collective. What fails once, fails on every rank and for
// good. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Blocks until all ranks have brought their part and the work is done. Throws RuntimeFault.
  virtual void meet(int rank, std::int64_t sequence, const Collective& collective) = 0;

  // The rank will not come any more; ranks that wait for it fail.
  virtual void leave(int rank) = 0;
  virtual void return_to(int rank) = 0;  // takes leave() back

  virtual void abort(const std::string& reason) = 0;
  virtual std::optional<std::string> failure() = 0;
  virtual void throw_if_failed() = 0;
};

}  // namespace zeroproof::host
