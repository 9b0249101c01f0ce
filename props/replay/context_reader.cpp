#include "props/replay/context_reader.h"

#include <algorithm>
#include <deque>

#include "props/replay/moment.h"
#include "props/report/event_words.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

constexpr std::size_t kBefore = 7;
constexpr std::size_t kAfter = 2;

// One place and what has been collected for it.
struct ContextPlace {
  std::uint64_t lc = 0;
  std::size_t index = 0;  // into the answer
  std::vector<DiagnosisMoment> moments;
  std::size_t after = 0;
  bool is_reached = false;
};

class ContextReader {
 public:
  explicit ContextReader(const std::vector<std::uint64_t>& lcs) {
    for (std::size_t at = 0; at < lcs.size(); ++at)
      places_.push_back({.lc = lcs[at], .index = at, .moments = {}});
    std::sort(places_.begin(), places_.end(),
              [](const ContextPlace& a, const ContextPlace& b) { return a.lc < b.lc; });
  }

  void on_event(const HookEvent& event, const NameTable& names) {
    const bool is_detail = event_words(event, names).is_detail;
    for (std::size_t at = first_; at < places_.size() && places_[at].lc <= event.lc; ++at) {
      ContextPlace& place = places_[at];
      if (event.lc == place.lc) {
        reach(place, moment_of(event, names));
      } else if (!is_detail && place.after < kAfter) {
        place.moments.push_back(moment_of(event, names));
        ++place.after;
      }
    }
    while (first_ < places_.size() && places_[first_].after == kAfter) ++first_;
    if (is_detail) return;
    recent_.push_back(moment_of(event, names));
    if (recent_.size() > kBefore) recent_.pop_front();
  }

  bool is_done() const { return first_ == places_.size(); }

  std::vector<std::vector<DiagnosisMoment>> take() {
    std::vector<std::vector<DiagnosisMoment>> all(places_.size());
    for (ContextPlace& place : places_) all[place.index] = std::move(place.moments);
    return all;
  }

 private:
  void reach(ContextPlace& place, DiagnosisMoment bad) {
    place.moments.assign(recent_.begin(), recent_.end());
    bad.is_bad = true;
    place.moments.push_back(std::move(bad));
    place.is_reached = true;
  }

  std::vector<ContextPlace> places_;
  std::size_t first_ = 0;  // the places before it are done
  std::deque<DiagnosisMoment> recent_;
};

}  // namespace

std::vector<std::vector<DiagnosisMoment>> read_context(const std::string& path,
                                                       const std::vector<std::uint64_t>& lcs) {
  ContextReader context(lcs);
  NameTable names;
  auto reader = TraceReader::open(path, names);
  while (reader && !context.is_done()) {
    const auto record = reader->next();
    if (!record || *record == nullptr) break;
    if (const HookEvent* event = (*record)->event()) context.on_event(*event, names);
  }
  return context.take();
}

}  // namespace zeroproof
