#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/runtime/fault.h"
#include "model/choice.h"
#include "sim/world/seam_faults.h"

namespace zeroproof::sim {

enum class FaultKind : std::uint8_t {
  exception,   // the operation of an event throws: a node, a hook, a callback, a recompute
  abort,       // the rank's program ends at an event
  timeout,     // a collective fails, and its group with it
  allocation,  // there is no memory
};

std::string_view fault_name(FaultKind kind);  // "exception"; static

// A place where a rank can fail, and how. Places are counted from one collective to the next, so
// that ranks with more or fewer events of their own agree on what they have done together.
struct Fault {
  FaultKind kind = FaultKind::exception;
  int rank = 0;             // -1: all, each at the same place
  std::uint64_t after = 0;  // so many collectives of the rank
  std::uint64_t at = 0;     // of the events or allocations since then, from 0
  friend bool operator==(const Fault&, const Fault&) = default;
};

std::string describe(const Fault& fault);  // "allocation.r1.17+2"

// What a planned exception is.
struct InjectedFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What ends the program of a rank: only its outermost caller catches it.
struct RankAborted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Faults as choices: a run without any counts what each rank reaches while it is open, then a
// chooser picks one place, or none, for the next run. Used by one world at a time.
class PlannedFaults final : public SeamFaults {
 public:
  explicit PlannedFaults(int world_size);

  FaultPoint& point(int rank) { return points_[static_cast<std::size_t>(rank)]; }
  // From here to close(), what the rank reaches is counted, and fails where that is planned.
  void open(int rank) { counts_[static_cast<std::size_t>(rank)].is_open = true; }
  void close(int rank) { counts_[static_cast<std::size_t>(rank)].is_open = false; }
  void reach(int rank, SeamCall call) override;
  std::uint64_t fingerprint() const override;

  // What can fail of what was counted: of one rank alone, its program, a collective or an
  // allocation; of all ranks alike, an operation or an allocation.
  std::vector<Fault> places() const;
  // Starts counting afresh.
  void plan(const std::optional<Fault>& fault);
  bool has_struck() const { return has_struck_; }

 private:
  class Point final : public FaultPoint {
   public:
    Point(PlannedFaults& faults, int rank) : faults_(faults), rank_(rank) {}
    void reach(EventKind, NameId) override { faults_.reach_event(rank_); }

   private:
    PlannedFaults& faults_;
    int rank_;
  };
  struct Interval {
    std::uint64_t events = 0;
    std::uint64_t allocations = 0;
  };
  struct Counts {
    bool is_open = false;
    std::vector<Interval> intervals{Interval{}};  // the last one is under way
  };

  void reach_event(int rank);
  bool strikes(FaultKind kind, int rank, std::uint64_t at);
  static void add_places(std::vector<Fault>& places, int rank,
                         const std::vector<Interval>& intervals);

  std::deque<Point> points_;
  std::vector<Counts> counts_;
  std::optional<Fault> fault_;
  bool has_struck_ = false;
};

// One of the places, or none: the choice at site "fault.event".
std::optional<Fault> choose_fault(Chooser& chooser, const std::vector<Fault>& places);

}  // namespace zeroproof::sim
