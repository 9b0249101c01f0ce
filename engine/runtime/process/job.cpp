#include "zeroproof/engine/runtime/process/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "engine/runtime/host/rank_errors.h"
#include "engine/runtime/host/rendezvous.h"
#include "engine/runtime/process/tcp_store.h"

namespace zeroproof {
namespace {

using Milliseconds = Store::Milliseconds;

constexpr Milliseconds kLook{50};
constexpr Milliseconds kLongestFarewell{5'000};
constexpr const char* kFailed = "failed";

std::string rank_key(std::string_view what, int rank) {
  return fmt::format("{}/{}", what, rank);
}

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

// Of this user, on this machine. Where another user made it, the job must not use it.
Result<std::string> folder_of_user() {
  const std::string temporary = std::filesystem::temp_directory_path().string();
  const std::string folder = fmt::format("{}/zeroproof-{}", temporary, ::getuid());
  ::mkdir(folder.c_str(), 0700);
  struct stat made = {};
  if (::lstat(folder.c_str(), &made) != 0 || !S_ISDIR(made.st_mode) || made.st_uid != ::getuid())
    return fail(ErrorCode::usage,
                fmt::format("{} is not a folder of this user's: give all processes --store FOLDER",
                            folder));
  return folder;
}

// Handed over, or of this machine alone: another one's processes could not read the file.
Result<StoreToken> token_of(const Launch& launch, const JobOptions& options) {
  if (!options.store_token_file.empty()) return StoreToken{.file = options.store_token_file};
  if (!launch.store_token.empty()) return StoreToken{.text = launch.store_token};
  const auto is_local =
      launch.local_size == launch.size ? Result<bool>(true) : is_loopback(launch.master_address);
  if (!is_local) return tl::unexpected(is_local.error());
  if (!*is_local)
    return fail(ErrorCode::usage,
                fmt::format("the store at {}:{} is open to other machines, and its processes have "
                            "no token: set ZEROPROOF_STORE_TOKEN on all of them to what openssl "
                            "rand -hex 16 prints once, or give all --store-token FILE",
                            launch.master_address, *launch.port));
  auto folder = folder_of_user();
  if (!folder) return tl::unexpected(folder.error());
  return StoreToken{.file = fmt::format("{}/token-{}", *folder, *launch.port), .is_made = true};
}

Result<std::unique_ptr<Store>> open_tcp_store(const Launch& launch, const StoreMember& member,
                                              const JobOptions& options) {
  auto token = token_of(launch, options);
  if (!token) return tl::unexpected(token.error());
  return TcpStore::open({launch.master_address, *launch.port, *token}, member, options.timeout);
}

Result<std::unique_ptr<Store>> open_store(const Launch& launch, const JobOptions& options) {
  const StoreMember member{launch.rank, launch.size, launch.run_id};
  if (!options.store_folder.empty())
    return FileStore::open(options.store_folder, member, options.timeout);
  if (!launch.master_address.empty() && launch.port) return open_tcp_store(launch, member, options);
  const bool is_half = !launch.master_address.empty() || launch.port;
  if (!is_half && launch.local_size == launch.size) {
    auto folder = folder_of_user();
    if (!folder) return tl::unexpected(folder.error());
    if (launch.run_id.empty()) *folder += "/" + launch.launcher;
    return FileStore::open(*folder, member, options.timeout);
  }
  return fail(ErrorCode::usage,
              fmt::format("{} started {} processes that do not know how to reach each other{}: set "
                          "MASTER_ADDR and MASTER_PORT to where rank 0 can listen, or give all "
                          "--store FOLDER, a folder that they share",
                          launch.launcher, launch.size,
                          is_half ? " (of MASTER_ADDR and MASTER_PORT one is set)" : ""));
}

}  // namespace

Result<std::shared_ptr<Job>> Job::join(const Launch& launch, const JobOptions& options) {
  auto store = open_store(launch, options);
  if (!store) return tl::unexpected(store.error());
  try {
    return std::make_shared<Job>(launch, std::move(*store), options.timeout);
  } catch (const RuntimeFault& fault) {
    return zeroproof::fail(ErrorCode::failed, fault.what());
  }
}

Job::Job(const Launch& launch, std::unique_ptr<Store> store, Milliseconds timeout)
    : launch_(launch),
      store_(std::move(store)),
      timeout_(timeout),
      names_(static_cast<std::size_t>(launch.size)),
      presences_(names_.size(), PeerState::absent) {
  try {
    meet();
  } catch (const RuntimeFault&) {
    store_->leave(std::min(kLongestFarewell, timeout_));
    throw;
  }
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

// The keeper of the store ends last, so that all hear of what went wrong.
Job::~Job() {
  watcher_.request_stop();
  if (watcher_.joinable()) watcher_.join();
  try {
    store_->leave(failure() ? std::min(kLongestFarewell, timeout_) : timeout_);
  } catch (const RuntimeFault&) {
    return;  // the store is gone already
  }
}

void Job::meet() {
  const std::string mine = rank_key("here", rank());
  store_->set(mine, this_process());
  const auto end = std::chrono::steady_clock::now() + timeout_;
  for (;;) {
    std::vector<int> missing;
    for (int other = 0; other < size(); ++other) {
      std::string& name = names_[static_cast<std::size_t>(other)];
      if (name.empty()) name = store_->wait(rank_key("here", other), Milliseconds{0}).value_or("");
      if (name.empty()) missing.push_back(other);
    }
    if (missing.empty()) return;
    poll_peers();
    raise_failure();
    if (std::chrono::steady_clock::now() >= end) {
      const std::string reason =
          fmt::format("rank {} of {} waited {} ms for rank{} {}, which did not come ({}, store {})",
                      rank(), size(), timeout_.count(), missing.size() == 1 ? "" : "s",
                      fmt::join(missing, ", "), launch_.launcher, store_->place());
      store_->set(kFailed, reason);
      throw RuntimeFault(reason);
    }
    store_->wait(rank_key("here", missing.front()), kLook);
  }
}

void Job::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      poll_peers();
    } catch (const RuntimeFault& fault) {
      note(fault.what());
    }
    std::unique_lock lock(mutex_);
    stopping_.wait_for(lock, stop, kLook, [] { return false; });
  }
}

void Job::poll_peers() {
  std::vector<PeerState> now = store_->presences();
  const auto failed = store_->wait(kFailed, Milliseconds{0});
  if (failed) note(*failed);
  const auto lost = std::ranges::find(now, PeerState::lost);
  if (lost != now.end())
    note(
        fmt::format("{} ended without a word", process_name(static_cast<int>(lost - now.begin()))));
  const std::lock_guard lock(mutex_);
  presences_ = std::move(now);
}

// The first failure is the one.
void Job::note(const std::string& failure) {
  std::vector<std::shared_ptr<Listener>> listeners;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    for (const std::weak_ptr<Listener>& listener : listeners_)
      if (auto alive = listener.lock()) listeners.push_back(std::move(alive));
  }
  for (const auto& listener : listeners) {
    try {
      (*listener)(failure);
    } catch (const std::exception&) {
      // The others have to hear of the failure too; it is what this process ends with.
    }
  }
}

std::vector<std::string> Job::all_gather(std::string_view mine) {
  const std::string round = fmt::format("gather/{}", next_number());
  store_->set(rank_key(round, rank()), mine);
  std::vector<std::string> all;
  for (int other = 0; other < size(); ++other)
    all.push_back(other == rank() ? std::string(mine)
                                  : wait_for({rank_key(round, other), other, "what all give"}));
  // Who has come to this round has read all of the one before.
  for (const std::string& key : spent_) store_->remove(key);
  spent_ = {rank_key(round, rank())};
  return all;
}

std::string Job::broadcast(std::string_view of_rank_0) {
  const std::string key = fmt::format("broadcast/{}", next_number());
  if (rank() != 0) return wait_for({key, 0, "what it announces", Limit::none});
  store_->set(key, of_rank_0);
  return std::string(of_rank_0);
}

void Job::set(const std::string& key, std::string_view value) {
  store_->set(key, value);
}

std::string Job::wait(const std::string& key, int rank, const std::string& what) {
  return wait_for({key, rank, what});
}

void Job::remove(const std::string& key) {
  store_->remove(key);
}

std::string Job::wait_for(const Awaited& awaited) {
  const auto end = std::chrono::steady_clock::now() + timeout_;
  for (;;) {
    const bool has_left = presence_of(awaited.rank) == PeerState::left;
    if (auto value = store_->wait(awaited.key, kLook)) return std::move(*value);
    raise_failure();
    if (has_left)
      throw RuntimeFault(
          fmt::format("{} ended without {}", process_name(awaited.rank), awaited.what));
    if (awaited.limit == Limit::timeout && std::chrono::steady_clock::now() >= end)
      throw RuntimeFault(fmt::format("rank {} waited {} ms for {}: {}", rank(), timeout_.count(),
                                     process_name(awaited.rank), awaited.what));
  }
}

PeerState Job::presence_of(int rank) const {
  const std::lock_guard lock(mutex_);
  return presences_[static_cast<std::size_t>(rank)];
}

void Job::fail(const std::string& reason) {
  try {
    store_->set(kFailed, reason);
  } catch (const RuntimeFault&) {
    return;  // who would hear of it is gone
  }
}

std::exception_ptr Job::explained(const std::exception_ptr& error) const {
  constexpr int kLooks = 6;
  if (host::is_abort(error)) return error;
  for (int look = 0; look < kLooks && !failure(); ++look) std::this_thread::sleep_for(kLook);
  const auto known = failure();
  return known ? std::make_exception_ptr(host::GroupAborted(*known)) : error;
}

std::optional<std::string> Job::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::shared_ptr<void> Job::on_failure(Listener listener) {
  auto kept = std::make_shared<Listener>(std::move(listener));
  std::optional<std::string> known;
  {
    const std::lock_guard lock(mutex_);
    known = failure_;
    listeners_.push_back(kept);
  }
  if (known) (*kept)(*known);
  return kept;
}

void Job::raise_failure() const {
  if (const auto known = failure()) throw host::GroupAborted(*known);
}

std::string Job::process_name(int rank) const {
  const std::string& name = names_[static_cast<std::size_t>(rank)];
  return name.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, name);
}

}  // namespace zeroproof
