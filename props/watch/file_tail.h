#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "props/watch/growing_bytes.h"
#include "sim/trace/gzip.h"

namespace zeroproof {

// A line of a recording. 0 is the header, the first record is 1.
struct NumberedLine {
  std::uint64_t number = 0;
  std::string text;
};

// The lines of a trace file that grows, plain or gzip, each once. A last line without its newline
// waits, and so does a gzip member that is half written. Not thread-safe.
class FileTail {
 public:
  explicit FileTail(std::unique_ptr<GrowingBytes> bytes);

  // Reads what is new. False: there is no such file.
  bool poll(std::vector<NumberedLine>& lines);

  // How often the file was replaced or cut back: its lines then come again from number 0.
  std::uint64_t restarts() const { return restarts_; }

 private:
  void restart();
  bool take(std::string_view bytes);
  void cut_lines(std::vector<NumberedLine>& lines);

  std::unique_ptr<GrowingBytes> bytes_;
  std::unique_ptr<GzipInflater> inflater_;  // null: plain text
  std::uint64_t identity_ = 0;
  std::uint64_t offset_ = 0;  // of the next byte of the file
  std::uint64_t next_number_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t damaged_size_ = 0;  // of the file as it could not be inflated; 0: it could
  std::string text_;                // inflated and not yet a line
};

}  // namespace zeroproof
