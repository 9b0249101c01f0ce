#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <vector>

namespace zeroproof::reference {

// The recorded order of modules and what a fetch takes from it: docs/spec/zero/stage3.md 3.3 to
// 3.5. Modules and parameters are rows of a World.
class FetchOrder {
 public:
  enum class Mode : std::uint8_t { invalid, record, complete };
  using Ids = std::vector<std::size_t>;
  using ParametersOf = std::function<Ids(std::size_t module)>;

  explicit FetchOrder(std::size_t parameters) : taken_for_(parameters, kNever) {}

  Mode mode() const { return mode_; }
  bool is_complete() const { return mode_ == Mode::complete; }
  // Collectives by which ranks compare the order where the root's next forward begins (3.5).
  int comparisons() const;

  // The root's forward begins.
  void restart(const ParametersOf& parameters_of);
  void invalidate();
  // Whether the complete order has it next.
  bool expects(std::size_t module) const;
  // A module is about to fetch; whether a complete order has it here.
  bool visit(std::size_t module);
  // Its parameters leave the queue; false: the order does not have them next.
  bool take_for(const Ids& parameters);
  // What the running fetch gathers ahead of its use, as far as fewer than `room` elements have been
  // taken: the free parameters that come next. They leave the queue.
  Ids take_ahead(std::int64_t room, const std::function<bool(std::size_t)>& is_free,
                 const std::function<std::int64_t(std::size_t)>& elements);
  // Whether both have taken the same from their queues.
  bool has_taken_as(const FetchOrder& other) const {
    return queue_.size() == other.queue_.size() && taken_for_ == other.taken_for_;
  }
  void advance() { ++step_; }

  // Of a module that ends now: parameters that its end frees (3.4).
  std::set<std::size_t> freed(const Ids& candidates, std::int64_t reuse_distance,
                              const ParametersOf& parameters_of,
                              const std::function<std::int64_t(std::size_t)>& elements) const;

 private:
  struct Use {
    std::size_t parameter;
    std::int64_t step;
  };
  static constexpr std::int64_t kNever = INT64_MIN;

  Mode mode_ = Mode::invalid;
  std::vector<std::size_t> modules_;
  std::vector<Use> uses_;
  std::deque<Use> queue_;
  std::vector<std::int64_t> taken_for_;  // by parameter: the last step whose use left the queue
  std::int64_t step_ = 0;
};

}  // namespace zeroproof::reference
