#include "sim/search/happens_before.h"

#include <algorithm>

namespace zeroproof {
namespace {

std::uint64_t mixed(std::uint64_t word) {
  word = (word ^ (word >> 31)) * 0x9E3779B97F4A7C15ULL;
  word = (word ^ (word >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return word ^ (word >> 32);
}

}  // namespace

std::uint32_t HappensBefore::last_of(std::uint32_t process) const {
  for (std::size_t i = events_.size(); i-- > 0;) {
    if (events_[i].process == process) return static_cast<std::uint32_t>(i);
  }
  return kNone;
}

void HappensBefore::join(std::uint32_t* into, std::size_t index) const {
  const std::uint32_t* const other = clock(index);
  for (std::size_t i = 0; i < processes_; ++i) into[i] = std::max(into[i], other[i]);
}

void HappensBefore::join_awaited(std::uint32_t* into, const TraceEvent& event) const {
  for (const ObjectAccess& mine : *event.footprint) {
    std::uint32_t left = mine.touch == Touch::await ? mine.level : 0;
    for (std::size_t i = 0; left != 0 && i < events_.size(); ++i) {
      const Footprint& other = *events_[i].footprint;
      const bool is_adding =
          std::any_of(other.begin(), other.end(), [&](const ObjectAccess& access) {
            return access.object == mine.object && access.touch == Touch::add;
          });
      if (is_adding && --left == 0) join(into, i);
    }
  }
}

void HappensBefore::find_races(const TraceEvent& event, std::vector<std::uint32_t>& races) const {
  races.clear();
  const std::uint32_t last = last_of(event.process);
  for (std::size_t i = events_.size(); i-- > 0;) {
    if (events_[i].process == event.process || !are_dependent(events_[i], event)) continue;
    if (last == kNone || !is_before(i, last)) races.push_back(static_cast<std::uint32_t>(i));
  }
}

std::vector<std::uint32_t> HappensBefore::races_of(const TraceEvent& event) const {
  std::vector<std::uint32_t> races;
  find_races(event, races);
  return races;
}

void HappensBefore::push(const TraceEvent& event) {
  const std::size_t index = events_.size();
  const std::uint32_t last = last_of(event.process);
  if (races_.size() == index) races_.emplace_back();
  find_races(event, races_[index]);
  clocks_.resize((index + 1) * processes_, 0);
  std::uint32_t* const own = &clocks_[index * processes_];
  if (last != kNone) join(own, last);
  for (const std::uint32_t other : races_[index]) join(own, other);
  join_awaited(own, event);
  position_.push_back(last == kNone ? 0 : position_[last] + 1);
  own[event.process] = position_.back() + 1;
  events_.push_back(event);
}

void HappensBefore::pop() {
  events_.pop_back();
  position_.pop_back();
  clocks_.resize(events_.size() * processes_);
}

std::uint64_t HappensBefore::class_hash() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    std::uint64_t word = mixed(events_[i].process + 1) ^ events_[i].label;
    for (std::size_t p = 0; p < processes_; ++p) word = mixed(word) + clock(i)[p];
    sum += mixed(word);
  }
  return sum;
}

}  // namespace zeroproof
