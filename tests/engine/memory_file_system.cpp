#include "tests/engine/memory_file_system.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace zeroproof {
namespace {

tl::unexpected<FileFault> fault_of(int number) {
  return file_fault(std::strerror(number));
}

std::string name_in_folder(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

// Which of the things that were not synced survive.
class MemoryFileSystem::Chance {
 public:
  Chance(CrashLoss loss, std::uint64_t seed) : loss_(loss), random_(seed) {}

  bool survives() {
    if (loss_ != CrashLoss::at_random) return loss_ == CrashLoss::nothing;
    return (random_() & 1U) != 0;
  }

  // Of bytes that were not synced: all, none, the first few, or the length without the bytes.
  std::string torn(const std::string& durable, const std::string& bytes) {
    if (loss_ != CrashLoss::at_random) return loss_ == CrashLoss::nothing ? bytes : durable;
    const std::size_t length = bytes.empty() ? 0 : random_() % (bytes.size() + 1);
    switch (random_() % 4) {
      case 0:
        return durable;
      case 1:
        return bytes;
      case 2:
        return bytes.substr(0, length);
      default:
        return bytes.substr(0, length) + std::string(bytes.size() - length, '\0');
    }
  }

 private:
  CrashLoss loss_;
  std::mt19937_64 random_;
};

void MemoryFileSystem::Inode::apply(const Change& change) {
  for (const std::string& name : change.erased) entries.erase(name);
  if (change.inode != nullptr) entries[change.name] = change.inode;
  pending.push_back(change);
}

class MemoryFileSystem::File final : public WritableFile {
 public:
  File(MemoryFileSystem& files, InodePtr inode) : files_(files), inode_(std::move(inode)) {}

  FileResult<std::size_t> write_some(std::string_view bytes) override {
    const bool was_alive = !files_.has_crashed_;
    bytes = bytes.substr(0, files_.write_max_);
    files_.largest_piece_ = std::max(files_.largest_piece_, bytes.size());
    if (auto may = files_.begin(true); !may) {
      if (was_alive && files_.has_crashed_) inode_->bytes.append(bytes.substr(0, bytes.size() / 2));
      return tl::unexpected(may.error());
    }
    inode_->bytes.append(bytes);
    return bytes.size();
  }

  FileResult<void> sync() override {
    if (auto may = files_.begin(false); !may) return may;
    inode_->durable_bytes = inode_->bytes;
    return {};
  }

 private:
  MemoryFileSystem& files_;
  InodePtr inode_;
};

MemoryFileSystem::MemoryFileSystem() : root_(std::make_shared<Inode>()) {
  root_->is_folder = true;
}

void MemoryFileSystem::set_fault(FileFaultKind kind, std::int64_t operation) {
  fault_ = kind;
  fault_at_ = operations_ + operation;
}

FileResult<void> MemoryFileSystem::begin(bool needs_space) {
  const std::int64_t operation = operations_++;
  if (has_crashed_) return file_fault("the machine has crashed");
  if (fault_ == FileFaultKind::none || operation < fault_at_) return {};
  if (fault_ == FileFaultKind::no_space && needs_space) return fault_of(ENOSPC);
  if (operation > fault_at_) return {};
  if (fault_ == FileFaultKind::io_error) return fault_of(EIO);
  if (fault_ != FileFaultKind::crash) return {};
  has_crashed_ = true;
  return file_fault("the machine has crashed");
}

MemoryFileSystem::InodePtr MemoryFileSystem::find(const std::string& path) const {
  if (path == "." || path == "/") return root_;
  InodePtr at = root_;
  for (std::size_t begin = 0; begin <= path.size() && at != nullptr;) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    const auto found = at->entries.find(name);
    at = found == at->entries.end() ? nullptr : found->second;
  }
  return at;
}

FileResult<MemoryFileSystem::InodePtr> MemoryFileSystem::folder_above(
    const std::string& path) const {
  InodePtr folder = find(folder_of(path));
  if (folder == nullptr) return fault_of(ENOENT);
  if (!folder->is_folder) return fault_of(ENOTDIR);
  return folder;
}

FileResult<std::unique_ptr<WritableFile>> MemoryFileSystem::create(const std::string& path) {
  if (auto may = begin(true); !may) return tl::unexpected(may.error());
  const auto folder = folder_above(path);
  if (!folder) return tl::unexpected(folder.error());
  InodePtr inode = find(path);
  if (inode == nullptr) {
    inode = std::make_shared<Inode>();
    (*folder)->apply({.erased = {}, .name = name_in_folder(path), .inode = inode});
  }
  inode->bytes.clear();
  return std::make_unique<File>(*this, std::move(inode));
}

FileResult<std::string> MemoryFileSystem::read(const std::string& path, std::uint64_t bytes_max) {
  const InodePtr inode = find(path);
  if (inode == nullptr) return fault_of(ENOENT);
  if (inode->is_folder) return file_fault("it is a directory");
  if (inode->bytes.size() > bytes_max) return file_fault("it is too large");
  largest_piece_ = std::max(largest_piece_, inode->bytes.size());
  return inode->bytes;
}

FileResult<std::string> MemoryFileSystem::read_range(const std::string& path, std::uint64_t begin,
                                                     std::size_t bytes) {
  const InodePtr inode = find(path);
  if (inode == nullptr) return fault_of(ENOENT);
  if (inode->is_folder) return file_fault("it is a directory");
  if (begin >= inode->bytes.size()) return std::string();
  std::string piece = inode->bytes.substr(begin, bytes);
  largest_piece_ = std::max(largest_piece_, piece.size());
  return piece;
}

FileResult<std::vector<std::string>> MemoryFileSystem::list(const std::string& folder) {
  const InodePtr inode = find(folder);
  if (inode == nullptr) return fault_of(ENOENT);
  std::vector<std::string> names;
  for (const auto& [name, entry] : inode->entries) names.push_back(name);
  return names;
}

bool MemoryFileSystem::exists(const std::string& path) {
  return find(path) != nullptr;
}

FileResult<void> MemoryFileSystem::make_folders(const std::string& path) {
  if (find(path) != nullptr) return {};
  if (auto made = make_folders(folder_of(path)); !made) return made;
  if (auto may = begin(true); !may) return may;
  auto inode = std::make_shared<Inode>();
  inode->is_folder = true;
  find(folder_of(path))->apply({.erased = {}, .name = name_in_folder(path), .inode = inode});
  return {};
}

FileResult<void> MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  if (auto may = begin(false); !may) return may;
  const InodePtr inode = find(from);
  const InodePtr replaced = find(to);
  const auto folder = folder_above(to);
  if (inode == nullptr || !folder) return fault_of(ENOENT);
  if (folder_of(from) != folder_of(to)) return fault_of(EXDEV);
  if (replaced != nullptr && replaced->is_folder) return fault_of(ENOTEMPTY);
  (*folder)->apply({{name_in_folder(from)}, name_in_folder(to), inode});
  return {};
}

// One operation for each thing that vanishes, the innermost first.
FileResult<void> MemoryFileSystem::remove_below(Inode& folder, const std::string& name) {
  const InodePtr inode = folder.entries.at(name);
  const Entries entries = inode->entries;
  for (const auto& [below, entry] : entries) {
    if (auto removed = remove_below(*inode, below); !removed) return removed;
  }
  if (auto may = begin(false); !may) return may;
  folder.apply({.erased = {name}, .name = {}, .inode = nullptr});
  return {};
}

FileResult<void> MemoryFileSystem::remove_all(const std::string& path) {
  if (find(path) == nullptr) return {};
  return remove_below(*find(folder_of(path)), name_in_folder(path));
}

FileResult<void> MemoryFileSystem::sync_folder(const std::string& path) {
  if (auto may = begin(false); !may) return may;
  const InodePtr inode = find(path);
  if (inode == nullptr) return fault_of(ENOENT);
  inode->durable_entries = inode->entries;
  inode->pending.clear();
  return {};
}

MemoryFileSystem::InodePtr MemoryFileSystem::restarted(const Inode& inode, Chance& chance) {
  auto result = std::make_shared<Inode>();
  result->is_folder = inode.is_folder;
  if (!inode.is_folder) {
    result->bytes = inode.bytes == inode.durable_bytes
                        ? inode.bytes
                        : chance.torn(inode.durable_bytes, inode.bytes);
    result->durable_bytes = result->bytes;
    return result;
  }
  Inode survivor;
  survivor.entries = inode.durable_entries;
  for (const Change& change : inode.pending) {
    if (chance.survives()) survivor.apply(change);
  }
  for (const auto& [name, entry] : survivor.entries) {
    result->entries[name] = restarted(*entry, chance);
  }
  result->durable_entries = result->entries;
  return result;
}

MemoryFileSystem MemoryFileSystem::after_crash(CrashLoss loss, std::uint64_t seed) const {
  Chance chance(loss, seed);
  MemoryFileSystem result;
  result.root_ = restarted(*root_, chance);
  return result;
}

std::vector<std::string> MemoryFileSystem::all_files() const {
  std::vector<std::string> paths;
  std::vector<std::pair<std::string, InodePtr>> open = {{"", root_}};
  while (!open.empty()) {
    const auto [path, inode] = open.back();
    open.pop_back();
    if (!inode->is_folder) paths.push_back(path);
    for (const auto& [name, entry] : inode->entries) {
      open.emplace_back(path.empty() ? name : path + "/" + name, entry);
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string MemoryFileSystem::bytes_of(const std::string& path) const {
  return find(path)->bytes;
}

void MemoryFileSystem::set_bytes(const std::string& path, std::string bytes) {
  find(path)->durable_bytes = bytes;
  find(path)->bytes = std::move(bytes);
}

}  // namespace zeroproof
