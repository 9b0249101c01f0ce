#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace zeroproof {

// 128 bits of everything that decides how the rest of an execution can go.
struct Fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};

// The fingerprint of a world as it is at a choice, taken when it is asked for: those who only pick
// do not pay for it. Valid during the call of choose(), as what it looks at may change afterwards.
class StateSource {
 public:
  StateSource() = default;
  StateSource(const Fingerprint& known) : known_(known) {}
  // `world.fingerprint()`, when asked.
  template <class World>
  static StateSource of(const World& world) {
    StateSource source;
    source.world_ = &world;
    source.take_ = [](const void* it) { return static_cast<const World*>(it)->fingerprint(); };
    return source;
  }

  operator Fingerprint() const { return take_ ? take_(world_) : known_; }

 private:
  Fingerprint known_;
  const void* world_ = nullptr;
  Fingerprint (*take_)(const void* world) = nullptr;  // null: known already
};

// One place where several orders are legal. `options` name what each choice would do next, for
// schedules and timelines; they are valid during the call.
struct ChoicePoint {
  std::string_view site;                      // "graph_task.ready", ...
  std::span<const std::string_view> options;  // at least two
  StateSource state;                          // equal states have equal futures
};

// Thrown by a Chooser to end an execution early, e.g. because the state was seen before.
// Nothing but the loop that drives executions catches it.
struct ExecutionCut {};

// The only door through which order may vary. Implementations must be deterministic.
class Chooser {
 public:
  virtual ~Chooser() = default;

  // An index below at.options.size(). May throw ExecutionCut.
  virtual std::size_t choose(const ChoicePoint& at) = 0;
};

// Always the first option.
class FirstChooser final : public Chooser {
 public:
  std::size_t choose(const ChoicePoint&) override { return 0; }
};

}  // namespace zeroproof
