#include "engine/runtime/process/file_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "engine/files/posix_file_system.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLargestValue = 1ULL << 40;
constexpr std::string_view kRunPrefix = "run-";

std::string life_path(const std::string& run, int rank) {
  return fmt::format("{}/alive.{}", run, rank);
}
std::string end_path(const std::string& run, int rank) {
  return fmt::format("{}/left.{}", run, rank);
}

// Sleeps longer and longer, so that what comes soon is seen soon.
class Patience {
 public:
  explicit Patience(Store::Milliseconds at_most) : end_(Clock::now() + at_most) {}

  // False: the time is over.
  bool wait() {
    if (Clock::now() >= end_) return false;
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, kLongestPause);
    return true;
  }

 private:
  static constexpr std::chrono::microseconds kLongestPause{10'000};
  Clock::time_point end_;
  std::chrono::microseconds pause_{100};
};

// Unlike a result, what is in a store need not survive the machine: a whole file, but no sync.
// Several processes and threads may put one key at a time, each by a file of its own.
FileResult<void> put(const std::string& path, std::string_view value) {
  static std::atomic<std::uint64_t> count = 0;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  FileSystem& files = posix_file_system();
  const std::string fresh =
      fmt::format("{}.{}.{}.{}.new", path, host.data(), ::getpid(), count.fetch_add(1));
  auto file = files.create(fresh);
  if (!file) return tl::unexpected(file.error());
  if (auto written = write_all(**file, value); !written) return written;
  file->reset();
  return files.rename(fresh, path);
}

// The name of the run that `current` names; empty for none, or for what no rank 0 wrote there.
std::string current_run(const std::string& folder) {
  constexpr std::uint64_t kLongestName = 100;
  const auto name = posix_file_system().read(folder + "/current", kLongestName);
  if (!name || !name->starts_with(kRunPrefix)) return {};
  const std::string_view number = std::string_view(*name).substr(kRunPrefix.size());
  return number.find_first_not_of("0123456789-") == std::string::npos ? *name : std::string();
}

Error unusable(const std::string& folder, const std::string& reason) {
  return {ErrorCode::usage, fmt::format("the store {}: {}: give a folder that every process of the "
                                        "job sees and can write to",
                                        folder, reason)};
}

struct JoinedRun {
  std::string path;
  LivenessLock life;
};

// What a dead run left goes; a living one is another job's.
Result<JoinedRun> begin_run(const std::string& folder) {
  FileSystem& files = posix_file_system();
  if (const std::string old = current_run(folder); !old.empty()) {
    const std::string path = folder + "/" + old;
    if (LivenessLock::is_held(life_path(path, 0)))
      return fail(ErrorCode::usage,
                  fmt::format("the store {}: another job is at work in it: give each a folder of "
                              "its own",
                              folder));
    files.remove_all(path);
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string name = fmt::format("{}{}-{}", kRunPrefix, now, ::getpid());
  const std::string path = folder + "/" + name;
  if (auto made = files.make_folders(path); !made)
    return tl::unexpected(unusable(folder, made.error().reason));
  auto life = LivenessLock::take(life_path(path, 0));
  if (!life) return tl::unexpected(unusable(folder, life.error().reason));
  if (auto named = put(folder + "/current", name); !named)
    return tl::unexpected(unusable(folder, named.error().reason));
  return JoinedRun{path, std::move(*life)};
}

// A run in which this rank has been is one that ends, not the one that begins.
Result<JoinedRun> find_run(const std::string& folder, const StoreMember& member,
                           Store::Milliseconds at_most) {
  Patience patience(at_most);
  do {
    const std::string name = current_run(folder);
    const std::string path = folder + "/" + name;
    if (name.empty() || !LivenessLock::is_held(life_path(path, 0))) continue;
    auto life = LivenessLock::take(life_path(path, member.rank));
    if (life) return JoinedRun{path, std::move(*life)};
  } while (patience.wait());
  return fail(ErrorCode::failed,
              fmt::format("rank {} of {} waited {} ms for rank 0 of {}, which did not come to the "
                          "store {}",
                          member.rank, member.size, at_most.count(), member.size, folder));
}

}  // namespace

Result<std::unique_ptr<Store>> FileStore::open(const std::string& folder, const StoreMember& member,
                                               Milliseconds at_most) {
  std::string of_id = folder;
  if (!member.run_id.empty()) of_id += "/";
  for (const char c : member.run_id) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    of_id +=
        is_plain ? fmt::format("{}", c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  if (auto made = posix_file_system().make_folders(of_id); !made)
    return tl::unexpected(unusable(of_id, made.error().reason));
  auto run = member.rank == 0 ? begin_run(of_id) : find_run(of_id, member, at_most);
  if (!run) return tl::unexpected(run.error());
  return std::make_unique<FileStore>(of_id, run->path, member, std::move(run->life));
}

FileStore::FileStore(std::string folder, std::string run, const StoreMember& member,
                     LivenessLock life)
    : folder_(std::move(folder)), run_(std::move(run)), member_(member), life_(std::move(life)) {}

FileStore::~FileStore() {
  if (has_left_ && member_.rank == 0) give_up_run();
}

void FileStore::set(const std::string& key, std::string_view value) {
  if (auto written = put(path_of(key), value); !written)
    throw RuntimeFault(fmt::format("the store {}: rank {} cannot write {}: {}", folder_,
                                   member_.rank, key, written.error().reason));
}

std::optional<std::string> FileStore::wait(const std::string& key, Milliseconds at_most) {
  FileSystem& files = posix_file_system();
  const std::string path = path_of(key);
  Patience patience(at_most);
  do {
    if (auto value = files.read(path, kLargestValue)) return std::move(*value);
  } while (patience.wait());
  if (!files.exists(run_))
    throw RuntimeFault(fmt::format("the store {}: the folder of this run is gone", folder_));
  return std::nullopt;
}

void FileStore::remove(const std::string& key) {
  posix_file_system().remove_all(path_of(key));
}

std::vector<PeerState> FileStore::presences() {
  FileSystem& files = posix_file_system();
  std::vector<PeerState> all(static_cast<std::size_t>(member_.size), PeerState::absent);
  for (int rank = 0; rank < member_.size; ++rank) {
    PeerState& of = all[static_cast<std::size_t>(rank)];
    const std::string life = life_path(run_, rank);
    // In this order: a life appears held, so one that was there and is not held has ended.
    if (files.exists(end_path(run_, rank)))
      of = PeerState::left;
    else if (!files.exists(life))
      of = PeerState::absent;
    else if (LivenessLock::is_held(life))
      of = PeerState::here;
    else  // or it left in between
      of = files.exists(end_path(run_, rank)) ? PeerState::left : PeerState::lost;
  }
  return all;
}

void FileStore::leave(Milliseconds at_most) {
  if (has_left_) return;
  has_left_ = true;
  put(end_path(run_, member_.rank), "");
  if (member_.rank != 0) return;
  Patience patience(at_most);
  const auto is_here = [](PeerState of) { return of == PeerState::here; };
  while (std::ranges::any_of(presences(), is_here) && patience.wait()) continue;
}

// A key's slashes become dots, which no key has twice.
std::string FileStore::path_of(const std::string& key) const {
  std::string name = key;
  std::ranges::replace(name, '/', '.');
  return run_ + "/key." + name;
}

void FileStore::give_up_run() noexcept {
  FileSystem& files = posix_file_system();
  if (folder_ + "/" + current_run(folder_) == run_) files.remove_all(folder_ + "/current");
  files.remove_all(run_);
}

}  // namespace zeroproof
