#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// What a spool says about the file that its records go to.
struct SpoolBase {
  std::string path;           // of that file
  std::string header;         // its first line
  std::uint64_t events = 0;   // in the file already
  std::uint64_t records = 0;  // the same, the header left out
  std::uint64_t pass = 0;     // how often the spool was emptied
  bool has_file = false;
};

// Turns the records of a spool (recorder/zeroproof_recorder/spool.py: marshal of Python, one after
// the other) into the lines that the recorder makes of them (encoder.py). Data only: whatever is no
// plain value ends it. Not thread-safe.
class SpoolLines {
 public:
  SpoolLines();
  ~SpoolLines();
  SpoolLines(SpoolLines&&) noexcept;
  SpoolLines& operator=(SpoolLines&&) noexcept;

  // One whole record. False: it is none that this version knows.
  bool add(std::string_view record);

  // Of the last record that is one; nullopt: none yet.
  const std::optional<SpoolBase>& base() const;
  // Beside those that say what the spool is.
  std::uint64_t records() const;

  // Lines in order. A begin of a graph task whose number is not known yet waits, and what follows
  // it: the number comes with the first event of the task.
  std::vector<std::string> take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof
