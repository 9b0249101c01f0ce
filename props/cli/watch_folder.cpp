#include "props/cli/watch_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace zeroproof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSpoolEnd = ".spool";

// A file by its path, which is opened again where it was replaced.
class FileBytes final : public GrowingBytes {
 public:
  explicit FileBytes(std::string path) : path_(std::move(path)) {}
  ~FileBytes() override { close(); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::uint64_t identity() override {
    struct stat now = {};
    if (::stat(path_.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) {
      close();
      return 0;
    }
    if (descriptor_ >= 0 && now.st_ino != inode_) close();
    if (descriptor_ < 0) {
      descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
      inode_ = now.st_ino;
    }
    return descriptor_ < 0 ? 0 : inode_;
  }

  std::uint64_t size() override {
    struct stat now = {};
    return descriptor_ >= 0 && ::fstat(descriptor_, &now) == 0
               ? static_cast<std::uint64_t>(now.st_size)
               : 0;
  }

  std::string read_at(std::uint64_t offset, std::size_t count) override {
    std::string bytes(count, '\0');
    const ssize_t got = descriptor_ < 0
                            ? -1
                            : ::pread(descriptor_, bytes.data(), count, static_cast<off_t>(offset));
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }

 private:
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t inode_ = 0;
};

std::unique_ptr<GrowingBytes> open_growing(const std::string& path) {
  return std::make_unique<FileBytes>(path);
}

bool is_spool(const std::string& name) {
  return name.starts_with('.') && name.ends_with(kSpoolEnd);
}

bool is_trace(const std::string& name) {
  return !name.starts_with('.') && (name.ends_with(".jsonl") || name.ends_with(".jsonl.gz"));
}

// Of ".HOST.PROCESS.spool"; 0: it has another form.
std::int64_t process_of(const std::string& name) {
  const std::string rest = name.substr(0, name.size() - kSpoolEnd.size());
  const std::string digits = rest.substr(rest.rfind('.') + 1);
  std::int64_t process = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), process);
  return error == std::errc() && end == digits.data() + digits.size() ? process : 0;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

bool WatchFolder::exists() const {
  std::error_code ignored;
  return fs::is_directory(folder_, ignored);
}

void WatchFolder::look(Watch& watch) {
  const std::vector<std::string> names = names_in(folder_);
  for (const std::string& name : names)
    if (is_spool(name)) add_spool(watch, (fs::path(folder_) / name).string());
  std::set<std::string> known;
  for (const std::string& path : watch.paths()) known.insert(fs::path(path).filename().string());
  for (const std::string& name : names) {
    if (!is_trace(name) || known.contains(name)) continue;
    const std::string path = (fs::path(folder_) / name).string();
    of_file_[name] = path;
    watch.add(path, RankStream(path, nullptr, open_growing));
  }
  look_at_owners(watch);
}

void WatchFolder::add_spool(Watch& watch, const std::string& path) {
  if (watch.has(path)) return;
  auto spool = std::make_unique<SpoolTail>(open_growing(path));
  if (!spool->poll() || spool->base() == nullptr) return;  // not begun, or of another version
  const std::string file = (fs::path(folder_) / fs::path(spool->base()->path).filename()).string();
  if (const auto old = of_file_.find(fs::path(file).filename().string()); old != of_file_.end()) {
    watch.remove(old->second);
    of_file_.erase(old);
  }
  owners_[path] = {process_of(fs::path(path).filename().string()), false};
  watch.add(path, RankStream(file, std::make_unique<SpoolTail>(open_growing(path)), open_growing));
}

// A process that dies leaves the rest of its recording to the guardian. Where that was killed as
// well, the spool stays and its owner is gone.
void WatchFolder::look_at_owners(Watch& watch) {
  for (auto& [spool, owner] : owners_) {
    if (owner.process == 0) continue;
    if (!owner.was_seen) {
      owner.was_seen = maps(owner.process, spool);
      continue;
    }
    std::error_code ignored;
    if (fs::exists(fmt::format("/proc/{}", owner.process), ignored)) continue;
    watch.set_dead(spool);
    owner.process = 0;
  }
}

bool WatchFolder::maps(std::int64_t process, const std::string& spool) {
  const std::string name = fs::path(spool).filename().string();
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  std::string line;
  while (std::getline(maps, line))
    if (line.ends_with(name)) return true;
  return false;
}

std::string WatchFolder::snapshot(const WatchedRank& rank) {
  const std::string name = fs::path(rank.path).filename().string();
  std::unique_ptr<SpoolTail> spool;
  for (const auto& [path, owner] : owners_) {
    auto one = std::make_unique<SpoolTail>(open_growing(path));
    const bool is_there = one->poll() && one->base() != nullptr;
    if (is_there && fs::path(one->base()->path).filename().string() == name) spool = std::move(one);
  }
  if (!spool) return rank.path;
  RankStream stream(rank.path, std::move(spool), open_growing);
  std::string copy = (fs::path(scratch_.path()) / fs::path(name).replace_extension("")).string();
  std::ofstream file(copy, std::ios::binary);
  for (const std::string& line : stream.poll().lines) file << line << '\n';
  return copy;
}

}  // namespace zeroproof
