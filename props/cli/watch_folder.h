#pragma once

#include <map>
#include <set>
#include <string>

#include "props/cli/scratch_folder.h"
#include "props/watch/watch.h"

namespace zeroproof {

// The recordings of a folder while they are made: finds files and spools, and the processes that
// own these. Not thread-safe.
class WatchFolder {
 public:
  explicit WatchFolder(std::string folder) : folder_(std::move(folder)) {}

  // Adds what has appeared since the last look.
  void look(Watch& watch);

  // The lines of a rank so far as a file; see TraceSnapshot.
  std::string snapshot(const WatchedRank& rank);

  bool exists() const;

 private:
  struct Owner {
    std::int64_t process = 0;
    bool was_seen = false;  // it maps the spool, so that its number is one of this machine's
  };

  void add_spool(Watch& watch, const std::string& path);
  void look_at_owners(Watch& watch);
  static bool maps(std::int64_t process, const std::string& spool);

  std::string folder_;
  ScratchFolder scratch_;
  std::map<std::string, Owner> owners_;         // by spool
  std::map<std::string, std::string> of_file_;  // names in the watch of files without a spool
};

}  // namespace zeroproof
