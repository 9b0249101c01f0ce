#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "props/report/picture/picture.h"
#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Makes a picture from the events of one or more sources (a trace a rank, or a run of a schedule):
// pairs brackets, collectives, gathers and buckets. A source ends where the next begins. Memory
// grows with the events. Not thread-safe.
class PictureBuilder {
 public:
  // `names` holds the names of all events and must outlive the builder.
  explicit PictureBuilder(const NameTable& names);
  ~PictureBuilder();

  // What comes next is of this source; `name` is its file, for people.
  void begin_source(const HeaderRecord& header, std::string_view name);
  void declare(const ThreadRecord& thread);

  // `line`: the event as hooktrace has it, with everything that HookEvent has no member for;
  // kJsonPadding readable bytes follow it.
  void add(const HookEvent& event, std::string_view line);
  // An event that stands in no file.
  void add(const HookEvent& event);

  std::size_t event_count() const;

  // The number of the event with this clock of a source and rank; -1: it is not shown.
  std::int64_t find_event(std::size_t source, std::int32_t rank, std::uint64_t lc) const;
  // The gt.begin of a call; -1.
  std::int64_t find_task(std::size_t source, std::int64_t call) const;

  // Once. Title, note and findings are left to the caller: numbers of events, also those that
  // find_event() has given out, stay as they are.
  Picture finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof
