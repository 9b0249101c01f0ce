#pragma once

#include <memory>
#include <vector>

#include "props/reference/findings.h"
#include "props/reference/world.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::reference {

// Follows the events of one rank beside a small, slow ZeRO, and says where the rank did what the
// rules of docs/spec/zero do not allow. It knows the configuration and the tables of a World, and
// not the program. What the rules leave open it counts and does not judge. Used on the
// thread of its rank; findings and coverage after that.
class Walker final : public EventSink {
 public:
  // `names` are those of the events and must outlive it. `worlds`: one for each engine, by its id;
  // events without an id belong to the first.
  Walker(const NameTable& names, std::vector<World> worlds);
  ~Walker() override;

  void on_event(const HookEvent& event) override;
  // After the last event; `is_complete`: the rank's program came to its end. Call once.
  void finish(bool is_complete);

  // The first of each rule and engine, in the order in which they came.
  std::vector<Finding> findings() const;
  Coverage coverage() const;

 private:
  class Engine;

  std::vector<std::unique_ptr<Engine>> engines_;
};

}  // namespace zeroproof::reference
