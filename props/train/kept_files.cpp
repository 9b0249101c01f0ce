#include "props/train/kept_files.h"

#include <algorithm>
#include <set>
#include <utility>

namespace zeroproof::train {
namespace {

bool is_below(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

// What every file system has.
bool is_root(const std::string& path) {
  return path == "." || path == "/";
}

constexpr const char* kMissing = "No such file or directory";
constexpr const char* kIsFolder = "Is a directory";
constexpr const char* kNoFolder = "Not a directory";

}  // namespace

bool is_within(const std::string& path, const std::string& top) {
  return path == top || is_below(path, top);
}

class KeptFiles::File final : public WritableFile {
 public:
  File(KeptFiles& files, std::string path) : files_(files), path_(std::move(path)) {}

  FileResult<std::size_t> write_some(std::string_view bytes) override {
    files_.entries_[path_].bytes += bytes;
    return bytes.size();
  }
  FileResult<void> sync() override { return {}; }

 private:
  KeptFiles& files_;
  std::string path_;
};

bool KeptFiles::is_folder(const std::string& path) const {
  const auto entry = entries_.find(path);
  return is_root(path) || (entry != entries_.end() && entry->second.is_folder);
}

bool KeptFiles::is_file(const std::string& path) const {
  const auto entry = entries_.find(path);
  return entry != entries_.end() && !entry->second.is_folder;
}

bool KeptFiles::holds_something(const std::string& folder) const {
  return std::ranges::any_of(entries_,
                             [&](const auto& entry) { return is_below(entry.first, folder); });
}

std::string KeptFiles::parent_fault(const std::string& path) const {
  const std::string parent = folder_of(path);
  if (is_folder(parent)) return {};
  return is_file(parent) ? kNoFolder : kMissing;
}

FileResult<std::unique_ptr<WritableFile>> KeptFiles::create(const std::string& path) {
  if (const std::string fault = parent_fault(path); !fault.empty()) return file_fault(fault);
  if (is_folder(path)) return file_fault(kIsFolder);
  entries_[path] = {};
  return std::make_unique<File>(*this, path);
}

FileResult<std::string> KeptFiles::read(const std::string& path, std::uint64_t bytes_max) {
  if (is_folder(path)) return file_fault(kIsFolder);
  const auto entry = entries_.find(path);
  if (entry == entries_.end()) return file_fault(kMissing);
  if (entry->second.bytes.size() > bytes_max) return file_fault("File too large");
  return entry->second.bytes;
}

FileResult<std::vector<std::string>> KeptFiles::list(const std::string& folder) {
  if (!is_folder(folder)) return file_fault(is_file(folder) ? kNoFolder : kMissing);
  std::set<std::string> names;
  for (const auto& [path, entry] : entries_) {
    if (!is_below(path, folder)) continue;
    const std::string rest = path.substr(folder.size() + 1);
    names.insert(rest.substr(0, rest.find('/')));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

bool KeptFiles::exists(const std::string& path) {
  return is_root(path) || entries_.contains(path);
}

FileResult<void> KeptFiles::make_folders(const std::string& path) {
  if (is_folder(path)) return {};
  if (is_file(path)) return file_fault(kNoFolder);
  if (auto made = make_folders(folder_of(path)); !made) return made;
  entries_[path].is_folder = true;
  return {};
}

std::string KeptFiles::rename_fault(const std::string& from, const std::string& to) const {
  if (!is_file(from) && !is_folder(from)) return kMissing;
  if (is_root(from) || is_root(to)) return "Device or resource busy";
  if (std::string fault = parent_fault(to); !fault.empty()) return fault;
  if (is_below(to, from)) return "Invalid argument";
  if (is_file(from)) return is_folder(to) ? kIsFolder : "";
  if (is_file(to)) return kNoFolder;
  return from != to && holds_something(to) ? "Directory not empty" : "";
}

FileResult<void> KeptFiles::rename(const std::string& from, const std::string& to) {
  if (const std::string fault = rename_fault(from, to); !fault.empty()) return file_fault(fault);
  std::map<std::string, Entry> moved;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool moves = is_within(entry->first, from);
    if (moves) moved[to + entry->first.substr(from.size())] = std::move(entry->second);
    entry = moves ? entries_.erase(entry) : std::next(entry);
  }
  for (auto& [path, entry] : moved) entries_[path] = std::move(entry);
  return {};
}

FileResult<void> KeptFiles::remove_all(const std::string& path) {
  std::erase_if(entries_, [&](const auto& entry) { return is_within(entry.first, path); });
  return {};
}

FileResult<void> KeptFiles::sync_folder(const std::string& path) {
  if (!is_folder(path)) return file_fault(is_file(path) ? kNoFolder : kMissing);
  return {};
}

}  // namespace zeroproof::train
