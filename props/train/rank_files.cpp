#include "props/train/rank_files.h"

#include <utility>

namespace zeroproof::train {
namespace {

tl::unexpected<FileFault> no_room() {
  return file_fault("No space left on device");
}

}  // namespace

class RankFiles::File final : public WritableFile {
 public:
  File(RankFiles& files, std::unique_ptr<WritableFile> file)
      : files_(files), file_(std::move(file)) {}

  FileResult<std::size_t> write_some(std::string_view bytes) override {
    if (!files_.has_room()) return no_room();
    return file_->write_some(bytes);
  }
  FileResult<void> sync() override {
    if (!files_.has_room()) return no_room();
    return file_->sync();
  }

 private:
  RankFiles& files_;
  std::unique_ptr<WritableFile> file_;
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
  return std::make_unique<File>(*this, std::move(*file));
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
  return files_.make_folders(path);
}

FileResult<void> RankFiles::rename(const std::string& from, const std::string& to) {
  if (!has_room()) return no_room();
  return files_.rename(from, to);
}

FileResult<void> RankFiles::sync_folder(const std::string& path) {
  if (!has_room()) return no_room();
  return files_.sync_folder(path);
}

}  // namespace zeroproof::train
