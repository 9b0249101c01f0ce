#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "props/watch/growing_bytes.h"
#include "props/watch/spool_lines.h"

namespace zeroproof {

// The records of a spool while its owner fills it. The owner empties it when it is full; then it
// begins with another first record, and what was not read stands in the file that it names.
// Not thread-safe.
class SpoolTail {
 public:
  explicit SpoolTail(std::unique_ptr<GrowingBytes> bytes);

  // Reads what is new. False: the spool is gone, its owner is done with it.
  bool poll();

  // What the spool says; nullptr before its first record, and for a spool of another version.
  const SpoolBase* base() const;
  // The records before the first line that `take` gives stand in the file.
  std::uint64_t records_before() const { return records_before_; }
  std::vector<std::string> take();

  // Every line of this pass comes once more.
  void rewind();
  // The owner has written everything to its file and taken no event since.
  bool is_empty() const { return lines_.records() == 0; }

 private:
  std::string record_at(std::uint64_t offset);
  void begin_pass(std::string first);
  bool add_piece();

  std::unique_ptr<GrowingBytes> bytes_;
  SpoolLines lines_;
  std::string first_;         // its first record: another one, another pass
  std::uint64_t offset_ = 0;  // of the next record
  std::uint64_t records_before_ = 0;
  bool is_understood_ = true;
};

}  // namespace zeroproof
