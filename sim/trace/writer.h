#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// Writes a hooktrace file, compressed when its name ends in ".gz". The file appears under its
// name only when `finish` succeeds. Equal calls give equal bytes. Not thread-safe.
class TraceWriter {
 public:
  static Result<TraceWriter> create(const std::string& path);

  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;
  ~TraceWriter();

  Result<void> add(const HeaderRecord& record);  // first
  Result<void> add(const ThreadRecord& record);
  Result<void> add(const ParamRecord& record);
  Result<void> add(const TensorRecord& record);
  Result<void> add(const GroupRecord& record);
  Result<void> add(const GraphRecord& record);
  Result<void> add(const NoteRecord& record);
  Result<void> add(const HookEvent& event, const NameTable& names);

  // Copies the line of a record as it was read, byte for byte, its `end` too.
  Result<void> pass(const Record& record);

  // Adds the `end` record unless one was passed, and moves the file into place.
  Result<void> finish();

 private:
  struct State;
  explicit TraceWriter(std::unique_ptr<State> state);
  template <class T>
  Result<void> add_record(const T& record);
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof
