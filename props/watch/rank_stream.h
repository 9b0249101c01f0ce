#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "props/watch/file_tail.h"
#include "props/watch/spool_tail.h"

namespace zeroproof {

// The lines of one rank's recording while it is made, each once and in order: from its file, and
// from the spool of the process as long as there is one. Not thread-safe.
class RankStream {
 public:
  // What came since the last look.
  struct News {
    bool has_restarted = false;  // what was given before is void: the lines begin with the header
    std::vector<std::string> lines;
  };

  RankStream(std::string path, std::unique_ptr<SpoolTail> spool, OpenGrowing open);

  News poll();

  // Of the trace file, which may not be there yet.
  const std::string& path() const { return path_; }
  bool has_spool() const { return spool_ != nullptr; }
  // Its process took no event since it wrote the last ones to the file: it records other steps.
  bool is_paused() const { return spool_ && spool_->is_empty(); }
  // It had a spool, which is gone: the file will not grow.
  bool is_owner_done() const { return had_spool_ && !spool_; }

 private:
  void poll_spool(News& news);
  void poll_file(News& news);
  void restart(News& news);
  void take_name(const std::string& path);

  std::string path_;
  std::unique_ptr<SpoolTail> spool_;
  OpenGrowing open_;
  std::unique_ptr<FileTail> file_;
  std::uint64_t file_restarts_ = 0;
  std::uint64_t next_ = 0;  // number of the next line to give; 0: the header
  std::string header_;      // as the spool has it
  bool had_spool_ = false;
};

}  // namespace zeroproof
