#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/world/fault_kind.h"
#include "sim/world/seam_faults.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::sim {

// What a rank comes by and where something can fail.
enum class FaultPlace : std::uint8_t { event, allocation, gradient, step, call };
inline constexpr std::size_t kFaultPlaces = 5;

// What a planned exception is.
struct InjectedFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What ends the program of a rank: only its outermost caller catches it.
struct RankAborted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Faults as choices: a run without any counts what each rank comes by while it is in a window, then
// a chooser picks places. The faults of a plan strike one after the other: the next one is due
// when the rank has recovered from the one before, or is past its window. Used by one world at a
// time.
class PlannedFaults final : public SeamFaults {
 public:
  explicit PlannedFaults(int world_size, std::vector<Fault> plan = {});

  FaultPoint& point(int rank) { return points_[static_cast<std::size_t>(rank)]; }
  // What an exploration does on a rank whose own hooks go.
  void set_hook_remover(int rank, std::function<void()> remove);

  // From here to the end, what the rank comes by is counted, and fails where that is planned.
  void begin_window(int rank, std::uint64_t window);
  void end_window(int rank) { of(rank).is_open = false; }
  // Within a window: what is only there to be looked at, which separates places as collectives do.
  void pause(int rank);
  void resume(int rank) { of(rank).is_open = true; }
  // The next fault is due on this rank, or on all of a fresh world.
  void recover(int rank) { ++of(rank).due; }
  void recover_all(std::size_t due);
  // What may strike in the window the rank is in, or null.
  const Fault* due(int rank) const;
  std::size_t due_number(int rank) const { return counts_[static_cast<std::size_t>(rank)].due; }

  void reach(int rank, SeamCall call) override;
  // Counts a gradient, a step or a call; whether the fault that is due strikes there.
  bool strikes(FaultPlace place, int rank);
  std::uint64_t fingerprint() const override;

  // What can fail of what was counted, of these kinds, by kind, rank, window and place.
  std::vector<Fault> places(std::span<const FaultKind> kinds) const;
  const std::vector<Fault>& plan() const { return plan_; }
  bool has_struck(std::size_t fault) const { return has_struck_.at(fault); }

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
    std::array<std::uint64_t, kFaultPlaces> places = {};
  };
  using Window = std::vector<Interval>;  // between collectives; the last one is under way
  struct Counts {
    bool is_open = false;
    bool is_aborted = false;  // its program unwinds unseen
    std::size_t due = 0;      // of the plan
    std::uint64_t window = 0;
    std::vector<Window> windows;
    std::function<void()> remove_hooks;
  };

  Counts& of(int rank) { return counts_[static_cast<std::size_t>(rank)]; }
  void reach_event(int rank);
  std::uint64_t count(FaultPlace place, Counts& counts);
  bool is_due(FaultKind kind, int rank, std::uint64_t at);
  std::vector<Window> common_windows() const;
  static void add_places(std::vector<Fault>& places, Fault fault,
                         const std::vector<Window>& windows);

  std::deque<Point> points_;
  std::vector<Counts> counts_;
  std::vector<Fault> plan_;
  std::vector<bool> has_struck_;
};

}  // namespace zeroproof::sim
