#pragma once

#include <memory>
#include <optional>
#include <string>

#include "props/replay/replay.h"
#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"

namespace zeroproof {

// The levels of one trace and what feeds them: for a file that is read from one end to the other,
// and for one that still grows. Feed it in order; memory is bounded by what is open. Not
// thread-safe.
class TraceReplayer {
 public:
  // `options` must outlive it; `path` names the trace in findings.
  TraceReplayer(const ReplayOptions& options, std::string path);
  ~TraceReplayer();
  TraceReplayer(const TraceReplayer&) = delete;
  TraceReplayer& operator=(const TraceReplayer&) = delete;

  // Of the events that are fed; their parser fills it.
  NameTable& names() { return names_; }

  // First. Code usage: the options cannot work for any trace.
  Result<void> begin(const HeaderRecord& header);
  void feed(const Record& record);
  // The trace is over; once. `truncation`: why its end is missing, nullopt for a complete one.
  void finish(const std::optional<std::string>& truncation);

  // No record after it was looked at.
  void set_fault(Error error) { out_.fault = std::move(error); }
  bool has_fault() const { return out_.fault.has_value(); }

  // What `finish` has found.
  TraceReplay& result() { return out_; }
  // As if the trace ended here, for one that goes on: `has_end` says whether its end record came.
  // The levels of order and manager are absent, and properties say only what has happened, never
  // what is missing.
  struct SoFar {
    TraceReplay trace;
    RankDigest digest;
  };
  SoFar so_far(bool has_end) const;

  // Of the file, for any choice of levels; null where it could not be opened.
  const RankDigest* digest() const;
  const RunFacts& facts() const { return facts_; }

 private:
  struct Levels;

  Result<void> make_state(const HeaderRecord& header);
  Result<void> header_fault(const Error& error);
  void count(TraceReplay& into) const;
  RankDigest& mutable_digest();

  const ReplayOptions& options_;
  TraceReplay out_;
  NameTable names_;
  RunFacts facts_;
  JobFacts job_;
  std::unique_ptr<Levels> levels_;
};

}  // namespace zeroproof
