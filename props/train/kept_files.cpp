#include "props/train/kept_files.h"

#include <set>
#include <utility>

namespace zeroproof::train {
namespace {

bool is_below(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

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

FileResult<std::unique_ptr<WritableFile>> KeptFiles::create(const std::string& path) {
  entries_[path] = {};
  return std::make_unique<File>(*this, path);
}

FileResult<std::string> KeptFiles::read(const std::string& path, std::uint64_t bytes_max) {
  const auto entry = entries_.find(path);
  if (entry == entries_.end() || entry->second.is_folder)
    return file_fault("No such file or directory");
  if (entry->second.bytes.size() > bytes_max) return file_fault("File too large");
  return entry->second.bytes;
}

FileResult<std::vector<std::string>> KeptFiles::list(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& [path, entry] : entries_) {
    if (!is_below(path, folder)) continue;
    const std::string rest = path.substr(folder.size() + 1);
    names.insert(rest.substr(0, rest.find('/')));
  }
  if (names.empty() && !exists(folder)) return file_fault("No such file or directory");
  return std::vector<std::string>(names.begin(), names.end());
}

bool KeptFiles::exists(const std::string& path) {
  return entries_.contains(path);
}

FileResult<void> KeptFiles::make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
    if (slash > 0) entries_[path.substr(0, slash)].is_folder = true;
  entries_[path].is_folder = true;
  return {};
}

FileResult<void> KeptFiles::rename(const std::string& from, const std::string& to) {
  if (!exists(from)) return file_fault("No such file or directory");
  std::map<std::string, Entry> moved;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool moves = entry->first == from || is_below(entry->first, from);
    if (moves) moved[to + entry->first.substr(from.size())] = std::move(entry->second);
    entry = moves ? entries_.erase(entry) : std::next(entry);
  }
  for (auto& [path, entry] : moved) entries_[path] = std::move(entry);
  return {};
}

FileResult<void> KeptFiles::remove_all(const std::string& path) {
  std::erase_if(entries_, [&](const auto& entry) {
    return entry.first == path || is_below(entry.first, path);
  });
  return {};
}

}  // namespace zeroproof::train
