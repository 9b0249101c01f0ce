#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace zeroproof::subject {

// Whether a release shows a finding.
enum class Presence { absent, present, cannot_run };

// Between two releases, by their places in a list, a finding came or went. Those between them could
// not run.
struct PresenceChange {
  std::size_t before = 0;
  std::size_t after = 0;
  Presence becomes = Presence::present;

  bool operator==(const PresenceChange&) const = default;
};

// Looks for the releases at which a finding comes and goes, without running all of them: the ends
// of the list and the release of the finding are tried, where none has it the others until one has,
// then the middle of each two neighbours that differ. A change and its undoing between two that
// agree stay unseen.
class ReleaseSearch {
 public:
  // Called once a release, by its place. Empty: the search ends there.
  using Try = std::function<std::optional<Presence>(std::size_t)>;

  ReleaseSearch(std::size_t count, Try try_release)
      : tried_(count), try_release_(std::move(try_release)) {}

  // `found_in`: the place of the release that the finding is from, where the list has it. False:
  // the search was ended.
  bool run(std::optional<std::size_t> found_in);

  // By place; empty where no release was tried.
  const std::vector<std::optional<Presence>>& tried() const { return tried_; }
  // In their order.
  std::vector<PresenceChange> changes() const;

 private:
  bool attempt(std::size_t at);
  bool attempt_end(std::size_t from, std::ptrdiff_t step);
  bool look_for_one();
  bool narrow();
  std::vector<std::size_t> known() const;
  std::optional<std::size_t> middle_of(std::size_t before, std::size_t after) const;

  std::vector<std::optional<Presence>> tried_;
  Try try_release_;
};

}  // namespace zeroproof::subject
