#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

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
  StateSource(const Fingerprint& known) : known_(known) {}  // NOLINT: a shorthand
  // `world.fingerprint()`, when asked.
  template <class World>
  static StateSource of(const World& world) {
    StateSource source;
    source.world_ = &world;
    source.take_ = [](const void* it) { return static_cast<const World*>(it)->fingerprint(); };
    return source;
  }

  operator Fingerprint() const { return take_ ? take_(world_) : known_; }  // NOLINT: as above

 private:
  Fingerprint known_;
  const void* world_ = nullptr;
  Fingerprint (*take_)(const void* world) = nullptr;  // null: known already
};

// What each option of a choice would do next, for schedules and timelines. Valid during the call of
// choose(); those who only count do not pay for the words.
class OptionNames {
 public:
  OptionNames(std::span<const std::string_view> names)  // NOLINT: a shorthand
      : size_(names.size()), names_(names.data()) {}
  template <class Names>
  // NOLINTNEXTLINE: a shorthand
  requires std::is_convertible_v<const Names&, std::span<const std::string_view>> OptionNames(
      const Names& names)
      : OptionNames(std::span<const std::string_view>(names)) {}
  // `world.names_of_moves()`, which has `size` elements, when somebody looks at one.
  template <class World>
  static OptionNames of(World& world, std::size_t size) {
    OptionNames names{std::span<const std::string_view>()};
    names.size_ = size;
    names.world_ = &world;
    names.take_ = [](void* it) { return static_cast<World*>(it)->names_of_moves().data(); };
    return names;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::string_view& operator[](std::size_t at) const { return begin()[at]; }
  const std::string_view* begin() const {
    if (names_ == nullptr && take_ != nullptr) names_ = take_(world_);
    return names_;
  }
  const std::string_view* end() const { return begin() + size_; }

 private:
  std::size_t size_ = 0;
  mutable const std::string_view* names_ = nullptr;
  void* world_ = nullptr;
  const std::string_view* (*take_)(void* world) = nullptr;  // null: known already
};

// One place where several orders are legal.
struct ChoicePoint {
  std::string_view site;  // "graph_task.ready", ...
  OptionNames options;    // at least two
  StateSource state;      // equal states have equal futures
};

// Thrown by a Chooser to end an execution early, e.g. because the state was seen before.
// Only the loop that drives executions catches it.
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
