#include "props/interpreter/rank_files.h"

#include <utility>

#include "props/train/kept_files.h"

namespace zeroproof::program {
namespace {

// Those of `from` and below it become those of `to`; whether there were some.
bool move_paths(std::set<std::string>& paths, const std::string& from, const std::string& to) {
  std::set<std::string> moved;
  for (const std::string& path : paths)
    if (train::is_within(path, from)) moved.insert(to + path.substr(from.size()));
  std::erase_if(paths, [&](const std::string& path) { return train::is_within(path, from); });
  paths.insert(moved.begin(), moved.end());
  return !moved.empty();
}

tl::unexpected<FileFault> no_room() {
  return file_fault("No space left on device");
}

}  // namespace

class RankFiles::File final : public WritableFile {
 public:
  File(RankFiles& files, std::unique_ptr<WritableFile> file, std::string path)
      : files_(files), file_(std::move(file)), path_(std::move(path)) {}

  FileResult<std::size_t> write_some(std::string_view bytes) override {
    files_.bytes_.insert(path_);
    if (std::exchange(is_begun_, true)) return file_->write_some(bytes);
    if (!files_.has_room()) return no_room();
    return file_->write_some(bytes.substr(0, bytes.size() / 2 + 1));
  }
  FileResult<void> sync() override {
    if (!files_.has_room()) return no_room();
    files_.bytes_.erase(path_);
    return file_->sync();
  }

 private:
  RankFiles& files_;
  std::unique_ptr<WritableFile> file_;
  std::string path_;
  bool is_begun_ = false;
};

void RankFiles::fail_write(int n, bool lasts) {
  heal();
  failing_write_ = n;
  lasts_ = lasts;
}

void RankFiles::fail_read(int n) {
  heal();
  failing_read_ = n;
}

void RankFiles::heal() {
  writes_ = reads_ = failing_write_ = failing_read_ = 0;
  bytes_.clear();
  names_.clear();
  is_renamed_early_ = false;
}

bool RankFiles::has_room() {
  ++writes_;
  if (failing_write_ == 0 || writes_ < failing_write_) return true;
  return writes_ > failing_write_ && !lasts_;
}

FileResult<std::unique_ptr<WritableFile>> RankFiles::create(const std::string& path) {
  if (!has_room()) return no_room();
  auto file = files_.create(path);
  if (!file) return file;
  names_.insert(path);
  return std::make_unique<File>(*this, std::move(*file), path);
}

FileResult<std::string> RankFiles::read(const std::string& path, std::uint64_t bytes_max) {
  ++reads_;
  if (failing_read_ != 0 && reads_ >= failing_read_) return file_fault("Input/output error");
  return files_.read(path, bytes_max);
}

FileResult<std::vector<std::string>> RankFiles::list(const std::string& folder) {
  return files_.list(folder);
}

FileResult<void> RankFiles::make_folders(const std::string& path) {
  if (!has_room()) return no_room();
  if (!files_.exists(path)) names_.insert(path);
  return files_.make_folders(path);
}

FileResult<void> RankFiles::rename(const std::string& from, const std::string& to) {
  if (!has_room()) return no_room();
  names_.erase(from);  // its new one alone has to last
  const bool has_bytes = move_paths(bytes_, from, to);
  const bool has_names = move_paths(names_, from, to);
  is_renamed_early_ = is_renamed_early_ || has_bytes || has_names;
  names_.insert(to);
  return files_.rename(from, to);
}

FileResult<void> RankFiles::remove_all(const std::string& path) {
  const auto is_gone = [&](const std::string& it) { return train::is_within(it, path); };
  std::erase_if(bytes_, is_gone);
  std::erase_if(names_, is_gone);
  return files_.remove_all(path);
}

FileResult<void> RankFiles::sync_folder(const std::string& path) {
  if (!has_room()) return no_room();
  std::erase_if(names_, [&](const std::string& it) { return folder_of(it) == path; });
  return files_.sync_folder(path);
}

}  // namespace zeroproof::program
