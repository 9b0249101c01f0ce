#include "props/watch/rank_stream.h"

#include <utility>

namespace zeroproof {

RankStream::RankStream(std::string path, std::unique_ptr<SpoolTail> spool, OpenGrowing open)
    : path_(std::move(path)),
      spool_(std::move(spool)),
      open_(std::move(open)),
      had_spool_(spool_ != nullptr) {}

RankStream::News RankStream::poll() {
  News news;
  if (spool_ && !spool_->poll()) spool_.reset();
  const SpoolBase* base = spool_ ? spool_->base() : nullptr;
  if (base != nullptr) take_name(base->path);
  // What the spool no longer has stands in the file.
  const bool is_behind = base != nullptr && base->has_file && spool_->records_before() >= next_;
  if (!spool_ || is_behind) poll_file(news);
  if (base != nullptr) poll_spool(news);
  return news;
}

// The folder may have another name there, where the job runs.
void RankStream::take_name(const std::string& path) {
  path_.resize(path_.rfind('/') + 1);
  path_ += path.substr(path.rfind('/') + 1);
}

void RankStream::restart(News& news) {
  news.has_restarted = news.has_restarted || next_ > 0;
  news.lines.clear();
  next_ = 0;
}

void RankStream::poll_spool(News& news) {
  const SpoolBase& base = *spool_->base();
  if (!base.has_file && base.header != header_) {  // facts that came before the first write
    if (next_ > 0) {
      restart(news);
      spool_->rewind();
      spool_->poll();
    }
    if (spool_->base() == nullptr) return;
    header_ = spool_->base()->header;
    news.lines.push_back(header_);
    next_ = 1;
  }
  if (next_ == 0 || spool_->records_before() + 1 > next_) return;  // the file has more first
  std::uint64_t number = spool_->records_before() + 1;
  for (std::string& line : spool_->take())
    if (number++ >= next_) {
      news.lines.push_back(std::move(line));
      ++next_;
    }
}

void RankStream::poll_file(News& news) {
  if (!file_) file_ = std::make_unique<FileTail>(open_(path_));
  std::vector<NumberedLine> lines;
  file_->poll(lines);
  // The file was cut back by the guardian, which gives the same lines again, or replaced by that of
  // another job.
  const bool is_other = file_->restarts() != file_restarts_ && !had_spool_;
  file_restarts_ = file_->restarts();
  if (is_other) restart(news);
  for (NumberedLine& line : lines) {
    if (line.number < next_) continue;
    news.lines.push_back(std::move(line.text));
    next_ = line.number + 1;
  }
}

}  // namespace zeroproof
