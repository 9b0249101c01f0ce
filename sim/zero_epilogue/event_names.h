#pragma once

#include <cstddef>

#include "sim/zero_epilogue/rank_rules.h"

namespace zeroproof::zero_epilogue {

// Numbers for what one rank can do in a schedule, each thing once: hooks by pass, the other kinds
// by how often they came before.
class EventNames {
 public:
  explicit EventNames(const Settings& settings)
      : hooks_(settings.hooks),
        passes_(settings.passes),
        collectives_(settings.collectives()),
        size_(2 + passes_ * (2 * hooks_ + 3) + 2 * collectives_) {}

  std::size_t size() const { return size_; }

  // `before` is the rank's state when it happens.
  std::size_t of(const RankState& before, RankEvent event) const {
    const std::size_t pass = before.pass;
    const std::size_t spines = 2 + hooks_ * passes_;
    const std::size_t epilogues = spines + hooks_ * passes_ + 3 * pass;
    const std::size_t launches = spines + hooks_ * passes_ + 3 * passes_;
    switch (event.kind) {
      case EventKind::choose_counter:
        return 0;
      case EventKind::choose_callback:
        return 1;
      case EventKind::hook:
        return 2 + pass * hooks_ + event.hook;
      case EventKind::spine:
        return spines + pass * hooks_ + before.spine - 1;
      case EventKind::counter:
        return epilogues;
      case EventKind::callback:
        return epilogues + 1;
      case EventKind::finish:
        return epilogues + 2;
      case EventKind::launch:
        return launches + before.launched;
      case EventKind::complete:
        break;
    }
    return launches + collectives_ + before.completed;
  }

 private:
  std::size_t hooks_;
  std::size_t passes_;
  std::size_t collectives_;
  std::size_t size_;
};

}  // namespace zeroproof::zero_epilogue
