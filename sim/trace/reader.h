#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

struct TraceReaderOptions {
  std::size_t max_line_bytes = std::size_t{64} << 20;  // a longer line is an error
};

// Reads a hooktrace 1.x file record by record, plain or gzip (by its first bytes). Memory
// is bounded by the longest line, not by the file; steady state does not allocate per event.
//
// Errors are one line `file:line: what is wrong; what to do`, code `unreadable`. Everything before
// the fault has been returned by then; afterwards `next` returns the same error again.
// Guarantees for the records it returns: the header comes first and once, no record follows `end`,
// required fields have their types, and lc of every rank increases strictly.
// Not thread-safe. `names` must outlive the reader and may be shared by readers of one thread.
class TraceReader {
 public:
  // Opens the file and reads its header.
  static Result<TraceReader> open(const std::string& path, NameTable& names,
                                  TraceReaderOptions options = {});

  // The same over bytes, which must outlive the reader; `name` stands for the path in errors.
  static Result<TraceReader> from_bytes(std::string_view bytes, std::string name, NameTable& names,
                                        TraceReaderOptions options = {});

  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

  const std::string& path() const;
  const HeaderRecord& header() const;

  // The next record, the header first, or nullptr at the end of the trace. Valid until the next
  // call.
  Result<const Record*> next();

  // After the end: why the trace counts as truncated (no `end` record: the recorder died), as one
  // line like an error; nullopt for a complete trace. What was returned is usable.
  const std::optional<std::string>& truncation() const;

 private:
  struct State;
  explicit TraceReader(std::unique_ptr<State> state);
  static Result<TraceReader> start(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof
